package runs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// The variables of the Agent Protocol that describe the run to its agent.
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

// environment returns the changes to the agent's environment: the variables of its run,
// and the removal of those of other agents.
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

// checkEnv refuses variables of the caller that would describe another run.
func checkEnv(env []string) error {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains([]string{envProject, envTask, envRun, envParent}, name) {
			return agent.Usagef("%s cannot be set for a recorded run, because it identifies the run; nothing was started", name)
		}
	}
	return nil
}

// Outer returns, for a program inside a recorded run, the root of the records and the
// labels of a run that the program starts. Ok is false outside a recorded run, and if
// the variables contradict each other.
func Outer(environ []string) (root string, labels agent.Labels, ok bool) {
	get := func(name string) string {
		value, _ := agent.LookupEnv(environ, name)
		return value
	}
	labels = agent.Labels{Project: get(envProject), Task: get(envTask), Parent: get(envRun)}
	dir := get(envRunsDir)
	task := filepath.Dir(dir)
	if CheckProject(labels.Project) != nil || CheckTask(labels.Task) != nil || CheckRun(labels.Parent) != nil || !filepath.IsAbs(dir) ||
		filepath.Base(task) != labels.Task || filepath.Base(filepath.Dir(task)) != labels.Project {
		return "", agent.Labels{}, false
	}
	return filepath.Dir(filepath.Dir(task)), labels, true
}
