package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v4"

	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/settings"
)

// module is the folder of this module.
const module = "../.."

// composeFile is what compose.yaml may have.
type composeFile struct {
	Name     string
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image string
	Build struct {
		Context, Dockerfile, Target string
		Args                        map[string]string
	}
	Command     []string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Restart     string
	Init        bool
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	NetworkMode string   `yaml:"network_mode"`
	StopGrace   string   `yaml:"stop_grace_period"`
}

// given are the variables that a user of compose.yaml sets.
var given = map[string]string{
	secretVariable: strings.Repeat("s", 64), "BUS_TASK_RECIPIENT": "bus-dev", "BUS_TASK_WORKSPACE": "/src", "BUS_TASK_UID": "1000",
}

var variableForm = regexp.MustCompile(`\$\{([A-Z_]+)(:[-?])([^{}$]*)\}`)

// readCompose reads compose.yaml as docker compose does, with the variables of given.
func readCompose(t *testing.T) (text string, file composeFile) {
	t.Helper()
	return readComposeWith(t, given)
}

func readComposeWith(t *testing.T, given map[string]string) (text string, file composeFile) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(module, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = string(raw)
	filled := variableForm.ReplaceAllStringFunc(text, func(r string) string {
		form := variableForm.FindStringSubmatch(r)
		if given[form[1]] == "" && form[2] == ":?" {
			t.Errorf("%s: unknown variable", r)
		}
		if given[form[1]] == "" && form[2] == ":-" {
			return form[3]
		}
		return given[form[1]]
	})
	if err := yaml.Load([]byte(filled), &file, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	return text, file
}

// The program accepts every command line and variable of compose.yaml, and what they name
// is in a volume.
func TestComposeCommands(t *testing.T) {
	_, file := readCompose(t)
	known := []string{secretVariable, "BUS_EVENTS_TOKEN_FILE"}
	for _, d := range settings.Docs() {
		known = append(known, d.Variables...)
	}
	for name, s := range file.Services {
		parsed := parse(t, s.Command)
		if parsed == nil {
			t.Errorf("%s: the program does not accept %q", name, s.Command)
			continue
		}
		for variable, value := range s.Environment {
			if !slices.Contains(known, variable) {
				t.Errorf("%s: the program does not read %s", name, variable)
			}
			if strings.HasPrefix(value, "/") && !s.mounts(value) {
				t.Errorf("%s: %s: %s is in no volume", name, variable, value)
			}
		}
		for _, word := range s.Command {
			if strings.HasPrefix(word, "/") && !s.mounts(word) {
				t.Errorf("%s: %s is in no volume", name, word)
			}
		}
	}
	ofWorker := file.Services["worker"]
	flags := parse(t, ofWorker.Command)
	policy := filepath.Join(module, "config", "lifecycle-policy.json")
	got, err := settings.Resolve(func(name string) (string, bool) {
		if name == "policy-file" {
			return policy, true
		}
		return settings.FromContext(flags)(name)
	}, environ(ofWorker.Environment))
	if err != nil {
		t.Fatal(err)
	}
	if grace, err := time.ParseDuration(ofWorker.StopGrace); err != nil || grace < got.HandBack+worker.StopLimit {
		t.Errorf("stop_grace_period %q, %v: a worker takes up to %v", ofWorker.StopGrace, err, got.HandBack+worker.StopLimit)
	}
	if got.Recipient != "bus-dev" || !got.AllowInsecure || !got.TrustedContainer || got.Sandbox != "danger-full-access" || got.MaxParallel != 4 {
		t.Errorf("%+v", got)
	}
}

// parse returns the context in which the program would run a command line; nil if it does
// not accept it.
func parse(t *testing.T, args []string) (parsed *cli.Context) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := newApp(&stdout, &stderr)
	keep := func(c *cli.Context) error {
		if c.NArg() == 0 {
			parsed = c
		}
		return nil
	}
	app.Action = keep
	var each func([]*cli.Command)
	each = func(commands []*cli.Command) {
		for _, c := range commands {
			if len(c.Subcommands) == 0 {
				c.Action = keep
			}
			each(c.Subcommands)
		}
	}
	each(app.Commands)
	if err := app.RunContext(t.Context(), append([]string{"bus-integration-task"}, args...)); err != nil {
		t.Error(err)
	}
	return parsed
}

func environ(variables map[string]string) (all []string) {
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	return all
}

// mounts reports whether a path is in a volume of the service.
func (s service) mounts(path string) bool {
	return slices.ContainsFunc(s.Volumes, func(v string) bool {
		parts := strings.Split(v, ":")
		rel, err := filepath.Rel(parts[1], path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// A check without a model needs three variables, as in the specification.
func TestComposeOverrides(t *testing.T) {
	with := maps.Clone(given)
	maps.Copy(with, map[string]string{"BUS_TASK_AGENT_BACKEND": "container", "BUS_TASK_COMMAND_JSON": `'["codex","--version"]'`, "BUS_TASK_COMMIT": `"false"`})
	_, file := readComposeWith(t, with)
	worker := file.Services["worker"]
	flags := parse(t, worker.Command)
	got, err := settings.Resolve(func(name string) (string, bool) {
		if name == "policy-file" {
			return filepath.Join(module, "config", "lifecycle-policy.json"), true
		}
		return settings.FromContext(flags)(name)
	}, environ(worker.Environment))
	if err != nil {
		t.Fatal(err)
	}
	if got.AgentBackend != "container" || !slices.Equal(got.Command, []string{"codex", "--version"}) || got.Commit {
		t.Errorf("%+v", got)
	}
}

// docker compose accepts compose.yaml, where it is installed.
func TestDockerComposeConfig(t *testing.T) {
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		t.Logf("docker compose is not installed (%v); TestComposeFile reads the file", err)
		return
	}
	cmd := exec.Command("docker", "compose", "-f", filepath.Join(module, "compose.yaml"), "config", "--quiet")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range given {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// compose.yaml refers only to what exists, opens no port to other machines, and has no
// secret.
func TestComposeFile(t *testing.T) {
	text, file := readCompose(t)
	used := map[string]bool{}
	for name, s := range file.Services {
		if s.Image == "" || s.Restart == "" || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s: %+v", name, s)
		}
		for _, v := range s.Volumes {
			parts := strings.Split(v, ":")
			if len(parts) == 3 && parts[2] != "ro" || len(parts) < 2 || !filepath.IsAbs(parts[1]) {
				t.Errorf("%s: volume %q", name, v)
			}
			_, declared := file.Volumes[parts[0]]
			_, err := os.Stat(filepath.Join(module, parts[0]))
			switch {
			case filepath.IsAbs(parts[0]): // of the user
			case strings.HasPrefix(parts[0], "./") && err == nil:
			case declared:
				used[parts[0]] = true
			default:
				t.Errorf("%s: volume %q: there is no %s", name, v, parts[0])
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, port)
			}
		}
		for on, condition := range s.DependsOn {
			other, ok := file.Services[on]
			want := "service_started"
			if other.Restart == "no" {
				want = "service_completed_successfully"
			}
			if !ok || condition.Condition != want {
				t.Errorf("%s: depends on %s: %s", name, on, condition.Condition)
			}
		}
		if key := s.Environment[secretVariable]; key != "" && s.Command[0] != "events" {
			t.Errorf("%s has the key of tokens", name)
		}
	}
	if declared := slices.Sorted(maps.Keys(file.Volumes)); !slices.Equal(declared, slices.Sorted(maps.Keys(used))) {
		t.Errorf("volumes %q, used are %v", declared, used)
	}
	if secret := regexp.MustCompile(`[A-Za-z0-9+/_]{40,}`).FindString(text); secret != "" || strings.Count(text, secretVariable+": ${"+secretVariable+":?") != 1 {
		t.Errorf("a secret %q, or the key is not from the environment", secret)
	}
}

// The Dockerfile has the stages that compose.yaml builds, for a user other than root, with
// the versions of the repository.
func TestDockerfile(t *testing.T) {
	_, file := readCompose(t)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	stages := map[string]string{}
	for stage := range strings.SplitSeq("\n"+read("Dockerfile"), "\nFROM ") {
		first, rest, _ := strings.Cut(stage, "\n")
		_, name, _ := strings.Cut(first, " AS ")
		stages[name] = first + "\n" + rest
	}
	for name, s := range file.Services {
		stage, ok := stages[s.Build.Target]
		if !ok || s.Build.Target == "" || s.Build.Context != ".." || s.Build.Dockerfile != "bus-integration-task/Dockerfile" {
			t.Errorf("%s: %+v", name, s.Build)
		}
		for arg := range s.Build.Args {
			if !strings.Contains(stage, "\nARG "+arg+"=") {
				t.Errorf("%s: the stage has no argument %s", name, arg)
			}
		}
		if !strings.Contains(stage, "\nUSER ${UID}:${UID}\n") || !strings.HasSuffix(stage, "\nENTRYPOINT [\"bus-integration-task\"]\n") {
			t.Errorf("%s: the stage is\n%s", name, stage)
		}
		// A volume over a folder that the image does not have would belong to root.
		for _, v := range s.Volumes {
			source, target, _ := strings.Cut(v, ":")
			target = strings.TrimSuffix(target, ":ro")
			if _, named := file.Volumes[source]; named && !strings.HasSuffix(v, ":ro") && !strings.Contains(stage, "/out/empty "+target+"\n") {
				t.Errorf("%s: the image has no folder %s", name, target)
			}
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read("go.mod"))[1]
	codex := regexp.MustCompile(`(?m)^codex +\S+ +(\S+)$`).FindStringSubmatch(read("../scripts/agents.txt"))[1]
	if !strings.HasPrefix(stages["build"], "golang:"+version+"-") || !strings.Contains(stages["worker"], "\nARG CODEX_VERSION="+codex+"\n") {
		t.Errorf("Go is not %s, or Codex is not %s", version, codex)
	}
}
