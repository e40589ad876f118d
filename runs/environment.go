package runs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// The variables of the Agent Protocol that tell an agent of its run.
const (
	envProject      = "JRUN_PROJECT_ID"
	envTask         = "JRUN_TASK_ID"
	envRun          = "JRUN_ID"
	envParent       = "JRUN_PARENT_ID"
	envRunsDir      = "JRUN_RUNS_DIR"
	envMessageBus   = "JRUN_MESSAGE_BUS"
	envTaskFolder   = "JRUN_TASK_FOLDER"
	envRunFolder    = "JRUN_RUN_FOLDER"
	envConductorURL = "JRUN_CONDUCTOR_URL"
)

// tokenVariables is the Agent Protocol's own table: the variable of each of its
// agents that holds the credential.
var tokenVariables = map[string]string{
	"claude":     "ANTHROPIC_API_KEY",
	"codex":      "OPENAI_API_KEY",
	"gemini":     "GEMINI_API_KEY",
	"perplexity": "PERPLEXITY_API_KEY",
	"xai":        "XAI_API_KEY",
}

// belongings are variables that go with the credential of another one.
var belongings = map[string]string{"OPENAI_ORG_ID": "OPENAI_API_KEY"}

// outerAgent is set by an agent for its tools; with it, some do not start.
const outerAgent = "CLAUDECODE"

// environment returns what the agent's environment has because of the record:
// where the run is, and no credential of another runtime. A runtime that says of
// no variable that it holds its credential keeps all of them.
func (r *record) environment(run *agent.Recordable) []string {
	changes := []string{
		envProject + "=" + r.info.ProjectID,
		envTask + "=" + r.info.TaskID,
		envRun + "=" + r.info.RunID,
		envParent + "=" + r.info.ParentRunID,
		envRunsDir + "=" + filepath.Dir(r.dir),
		envMessageBus + "=" + r.bus,
		envTaskFolder + "=" + r.task,
		envRunFolder + "=" + r.dir,
		outerAgent,
	}
	own := slices.Clone(run.TokenEnv)
	if name, ok := tokenVariables[baseToken(run.Start.Runtime)]; ok {
		own = append(own, name)
	}
	if len(own) == 0 {
		return changes
	}
	for _, name := range slices.Sorted(maps.Values(tokenVariables)) {
		if !slices.Contains(own, name) {
			changes = append(changes, name)
		}
	}
	for name, with := range belongings {
		if !slices.Contains(own, with) {
			changes = append(changes, name)
		}
	}
	return changes
}

// checkEnv refuses variables of the caller's that would tell the agent it is
// another run.
func checkEnv(env []string) error {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains([]string{envProject, envTask, envRun, envParent}, name) {
			return agent.Usagef("%s cannot be set for a run that is recorded: it says which run that is; nothing was started", name)
		}
	}
	return nil
}

// Outer returns where the program with the given environment runs, when that is
// inside of a recorded run: the root of the records, and the place of a run that
// it starts. ok is false outside, and where the variables contradict each other.
func Outer(environ []string) (root string, place agent.Place, ok bool) {
	get := func(name string) string {
		value, _ := agent.LookupEnv(environ, name)
		return value
	}
	place = agent.Place{Project: get(envProject), Task: get(envTask), Parent: get(envRun)}
	dir := get(envRunsDir)
	task := filepath.Dir(dir)
	if CheckProject(place.Project) != nil || CheckTask(place.Task) != nil || CheckRun(place.Parent) != nil || !filepath.IsAbs(dir) ||
		filepath.Base(task) != place.Task || filepath.Base(filepath.Dir(task)) != place.Project {
		return "", agent.Place{}, false
	}
	return filepath.Dir(filepath.Dir(task)), place, true
}
