package runs

import (
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

// environment returns the changes to the agent's environment that tell it of its
// run, and that keep what is another agent's from it.
func (r *record) environment(run *agent.Recordable) []string {
	return append([]string{
		envProject + "=" + r.info.ProjectID,
		envTask + "=" + r.info.TaskID,
		envRun + "=" + r.info.RunID,
		envParent + "=" + r.info.ParentRunID,
		envRunsDir + "=" + filepath.Dir(r.dir),
		envMessageBus + "=" + r.bus,
		envTaskFolder + "=" + r.task,
		envRunFolder + "=" + r.dir,
	}, run.ForeignEnv...)
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
func Outer(environ []string) (root string, place agent.Labels, ok bool) {
	get := func(name string) string {
		value, _ := agent.LookupEnv(environ, name)
		return value
	}
	place = agent.Labels{Project: get(envProject), Task: get(envTask), Parent: get(envRun)}
	dir := get(envRunsDir)
	task := filepath.Dir(dir)
	if CheckProject(place.Project) != nil || CheckTask(place.Task) != nil || CheckRun(place.Parent) != nil || !filepath.IsAbs(dir) ||
		filepath.Base(task) != place.Task || filepath.Base(filepath.Dir(task)) != place.Project {
		return "", agent.Labels{}, false
	}
	return filepath.Dir(filepath.Dir(task)), place, true
}
