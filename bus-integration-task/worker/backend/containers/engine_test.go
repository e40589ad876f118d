package containers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/internal/memorybus"
)

// The engine of this machine runs, bounds, deletes and removes containers as the protocol
// says. Their image is empty, and they have the programs of this machine.
func TestRunInContainers(t *testing.T) {
	t.Parallel()
	engine, err := containers.Detect(t.Context())
	if err != nil {
		t.Skip(err)
	}
	const image = "bus-integration-task-test:empty"
	load := exec.Command(engine.Command, "import", "-", image)
	load.Stdin = bytes.NewReader(make([]byte, 1024)) // an archive without files
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bus := new(memorybus.Bus)
	serveWith(t, bus, engine, image)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mounts := []containers.Mount{{Source: dir, Target: "/work"}, {Source: dir, Target: "/kept", ReadOnly: true}}
	for _, name := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if source, err := filepath.EvalSymlinks(name); err == nil {
			mounts = append(mounts, containers.Mount{Source: source, Target: name, ReadOnly: true})
		}
	}
	run := func(name string, seconds int, script string) (id string) {
		return publish(t, bus, containers.NameRunRequest, containers.RunRequest{
			RunID: filepath.Base(filepath.Dir(dir)) + "-" + name, Profile: "shell", Args: []string{"/bin/sh", "-c", script},
			TimeoutSeconds: seconds, Workdir: "/work", Mounts: mounts,
		})
	}
	r, failure := response(t, bus, run("ends", 60, "echo out; echo err >&2; echo x > made; echo x > /kept/other || exit 3"))
	if failure != nil || r.State != containers.StateFailed || r.ExitCode != 3 || r.Stdout != "out\n" || !strings.HasPrefix(r.Stderr, "err\n") || r.Runtime != engine.Name() {
		t.Errorf("%+v, %+v", r, failure)
	}
	if err := os.Remove(filepath.Join(dir, "made")); err != nil { // by this user
		t.Error(err)
	}
	if r, failure := response(t, bus, run("slow", 5, "sleep 1000")); failure != nil || r.State != containers.StateTimeout {
		t.Errorf("%+v, %+v", r, failure)
	}
	id := run("deleted", 60, "echo x > started; sleep 1000")
	testwait.Exists(t, filepath.Join(dir, "started"))
	publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: filepath.Base(filepath.Dir(dir)) + "-deleted"})
	if r, failure := response(t, bus, id); failure != nil || r.State != containers.StateDeleted {
		t.Errorf("%+v, %+v", r, failure)
	}
	out, err := exec.Command(engine.Command, "ps", "--all", "--quiet", "--filter", "name=bus-run-"+filepath.Base(filepath.Dir(dir))).Output()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("containers are left: %s, %v", out, err)
	}
}
