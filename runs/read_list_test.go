package runs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/testuser"
)

// The records of another implementation of the protocol.
const golden = "testdata/agent-protocol"

func TestListReadsTheOtherImplementation(t *testing.T) {
	t.Parallel()
	store := &Records{Root: golden}
	list := mustList(t, store, Filter{})
	var got []string
	for _, run := range list {
		got = append(got, strings.Join([]string{run.RunID, run.ProjectID, run.TaskID, run.Agent, string(run.Status), run.AgentVersion, run.ErrorSummary}, " "))
		switch {
		case run.Dir != filepath.Join(golden, run.ProjectID, run.TaskID, runsName, run.RunID):
			t.Errorf("%s is in %s", run.RunID, run.Dir)
		case run.Version != 1, run.ProcessOwnership != "managed", run.PID == 0, run.PGID == 0, run.CWD == "",
			!strings.HasSuffix(run.PromptPath, "/prompt.md"), !strings.HasSuffix(run.OutputPath, "/output.md"),
			!strings.HasSuffix(run.StdoutPath, "/agent-stdout.txt"), !strings.HasSuffix(run.StderrPath, "/agent-stderr.txt"):
			t.Errorf("it is not read whole: %+v", run)
		case run.Duration() <= 0 || run.Duration() > time.Second:
			t.Errorf("%s took %s", run.RunID, run.Duration())
		}
	}
	want := []string{
		"20261121-0007240000-28661-1 demo task-20260101-000000-xai xai completed  ",
		"20261121-0007240000-28651-1 demo task-20260101-000000-perplexity perplexity completed  ",
		"20261121-0007230000-28534-1 demo task-20260101-000000-fail codex failed codex 1.2.3 agent exited with code 3",
		"20261121-0007230000-28515-1 demo task-20260101-000000-demo-gemini gemini completed gemini 1.2.3 ",
		"20261121-0007230000-28498-1 demo task-20260101-000000-demo-claude claude completed claude 1.2.3 ",
		"20261121-0007230000-28482-1 demo task-20260101-000000-demo-codex codex completed codex 1.2.3 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if failed := list[2]; failed.ExitCode != 3 || !strings.HasPrefix(failed.CommandLine, "codex exec --dangerously") {
		t.Errorf("%+v", failed)
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 6 {
		info := exampleInfo(i)
		switch i {
		case 1:
			info.Agent = "one:local"
		case 2:
			info.Agent, info.Status = "one-more", StatusFailed
		case 3:
			info.ProjectID, info.TaskID = "other", exampleInfo(0).TaskID
		case 4:
			info.ParentRunID = exampleInfo(0).RunID
		case 5:
			info.Status, info.Owner = StatusRunning, "another:boot:1:1"
		}
		put(t, store.Root, info)
	}
	at := func(n int) time.Time { return exampleInfo(n).StartTime }
	for name, c := range map[string]struct {
		filter Filter
		want   string // minutes, newest first
	}{
		"all":             {Filter{}, "543210"},
		"project":         {Filter{Project: "demo"}, "54210"},
		"no project":      {Filter{Project: "dem"}, ""},
		"task":            {Filter{Task: exampleInfo(0).TaskID}, "30"},
		"project, task":   {Filter{Project: "demo", Task: exampleInfo(0).TaskID}, "0"},
		"parent":          {Filter{Parent: exampleInfo(0).RunID}, "4"},
		"failed":          {Filter{Status: StatusFailed}, "2"},
		"unknown":         {Filter{Status: StatusUnknown}, "5"},
		"all variants":    {Filter{Runtime: "one"}, "54310"},
		"variant":         {Filter{Runtime: "one:local"}, "1"},
		"since":           {Filter{Since: at(4)}, "54"},
		"until":           {Filter{Until: at(1)}, "10"},
		"between":         {Filter{Since: at(2), Until: at(3)}, "32"},
		"long after":      {Filter{Since: at(0).AddDate(0, 1, 0)}, ""},
		"limit":           {Filter{Limit: 2}, "54"},
		"limit of some":   {Filter{Limit: 2, Runtime: "one:local"}, "1"},
		"leads elsewhere": {Filter{Project: ".."}, ""},
		"leads deeper":    {Filter{Project: "demo/" + exampleInfo(0).TaskID}, ""},
	} {
		got := ""
		for _, run := range mustList(t, store, c.filter) {
			got += string(rune('0' + run.StartTime.Sub(start)/time.Minute))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// With a limit only the newest records are read, so damage to older ones is not seen.
func TestListReadsNoMoreThanItsLimitNeeds(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 200 {
		put(t, store.Root, exampleInfo(i))
	}
	old := exampleInfo(0)
	write(t, filepath.Join(store.Root, old.ProjectID, old.TaskID, runsName, old.RunID, infoName), "damaged")
	if list := mustList(t, store, Filter{Limit: 3}); len(list) != 3 || list[0].RunID != exampleInfo(199).RunID {
		t.Errorf("%d runs", len(list))
	}
	if list := mustList(t, store, Filter{Since: exampleInfo(0).StartTime.Add(2 * localSlack)}); len(list) != 0 {
		t.Errorf("%d runs", len(list))
	}
	list, problems, err := store.List(t.Context(), Filter{})
	if err != nil || len(list) != 199 || len(problems) != 1 {
		t.Errorf("%d runs, %v, %v", len(list), problems, err)
	}
}

// Runs are listed by start time, even when their IDs are in another order.
func TestListOrdersByStartTime(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 100 {
		info := exampleInfo(i)
		// All IDs are of one minute; the start times are in reverse order.
		info.RunID = exampleInfo(0).RunID[:13] + string(rune('0'+i/20)) + string(rune('0'+i/2%10)) + exampleInfo(0).RunID[15:] + string(rune('a'+i%2))
		info.StartTime = start.Add(time.Duration(200-i) * 100 * time.Millisecond)
		put(t, store.Root, info)
	}
	all := mustList(t, store, Filter{})
	some := mustList(t, store, Filter{Limit: 5})
	if diff := cmp.Diff(all[:5], some); diff != "" || len(all) != 100 {
		t.Errorf("%d runs: %s", len(all), diff)
	}
}

func TestListReadsEveryFormOfRunID(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	var want []string
	for i, id := range []string{
		"20261121-1000000000-28482-1", "20261121-1001004567-28482-2", "20261121-100200123-28482", "20261121-1003000000-28482-1-123456",
		"named-by-hand",
	} {
		info := exampleInfo(i)
		info.RunID = id
		put(t, store.Root, info)
		want = append([]string{id}, want...)
	}
	var got []string
	for _, run := range mustList(t, store, Filter{Since: start}) {
		got = append(got, run.RunID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A run ID without a time may be of any time.
	if list := mustList(t, store, Filter{Limit: 1}); len(list) != 1 || list[0].RunID != "named-by-hand" {
		t.Errorf("%+v", list)
	}
}

func TestTimeOfRunIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"20261121-0007230000-28482-1":   "2026-11-21T00:07:23Z",
		"20261121-0007234567-28482-1":   "2026-11-21T00:07:23.4567Z",
		"20261121-000723123-28482":      "2026-11-21T00:07:23.123Z",
		"20261121-0007231230-28482-1-x": "2026-11-21T00:07:23.123Z",
		"20261321-0007230000-28482-1":   "",
		"20261121-00072300000-28482-1":  "",
		"20261121-00072312-28482":       "",
		"20261121-0007231234":           "",
		"20261121-0007231234-":          "",
		"2026112-10007231234-1":         "",
		"latest":                        "",
		"":                              "",
	} {
		at, ok := timeOf(id)
		if got := at.Format(time.RFC3339Nano); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v, want %s", id, got, ok, want)
		}
	}
}

func TestListReportsDamagedRecords(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	put(t, store.Root, exampleInfo(0))
	costless := exampleInfo(1)
	costless.Usage = nil
	whole, err := os.ReadFile(filepath.Join(put(t, store.Root, costless), infoName))
	exampleTime := costless.StartTime.Format(time.RFC3339)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]struct{ text, problem string }{
		"empty":        {"", "empty"},
		"cut":          {string(whole[:len(whole)/2]), "cut off"},
		"half":         {"version: 1\nrun_id: x\n", "not a whole record"},
		"zeros":        {strings.Repeat("\x00", 500), "not a record of a run"},
		"binary":       {"\x7fELF\x02\x01\n", "not a record of a run"},
		"list":         {"- a\n- b\n", "not a record of a run"},
		"newer":        {strings.Replace(string(whole), "version: 1\n", "version: 2\n", 1), "version 2"},
		"negative":     {strings.Replace(string(whole), "version: 1\n", "version: -1\n", 1), "version -1"},
		"pid":          {strings.Replace(string(whole), "pid: 47", "pid: x47", 1), "not a record of a run"},
		"status":       {strings.Replace(string(whole), "status: completed\n", "", 1), "not a whole record"},
		"large":        {strings.Repeat("# note\n", maxInfo/7+1), "larger than 4 MiB"},
		"nan":          {string(whole) + "usage: {cost_usd: .nan}\n", "cost_usd"},
		"inf":          {string(whole) + "usage: {cost_usd: -.inf}\n", "cost_usd"},
		"far year":     {strings.Replace(string(whole), exampleTime, "9999-12-31T23:30:00-02:00", 1), "year 10000"},
		"early year":   {strings.Replace(string(whole), exampleTime, "0000-01-01T00:30:00+02:00", 1), "year -1"},
		"nested":       {strings.Repeat("[", 100_000) + "\n", "not a record of a run"},
		"alias bombed": {aliasBomb(), "not a record of a run"},
	}
	i := 10
	for name, file := range files {
		info := exampleInfo(i)
		i++
		info.TaskID = strings.ReplaceAll(name, " ", "-")
		write(t, filepath.Join(put(t, store.Root, info), infoName), file.text)
	}
	// run-info.yaml is not a file.
	for name, make := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":   func(path string) error { return os.Symlink("/etc/hostname", path) },
		"none":   func(path string) error { return os.Chtimes(filepath.Dir(path), start, start) },
	} {
		info := exampleInfo(i)
		i++
		info.TaskID = name
		path := filepath.Join(put(t, store.Root, info), infoName)
		if err := errors.Join(os.Remove(path), make(path)); err != nil {
			t.Fatal(err)
		}
	}
	list, problems, err := store.List(t.Context(), Filter{})
	if err != nil || len(list) != 2 {
		t.Errorf("%d runs, want 2, %v", len(list), err)
	}
	text := errors.Join(problems...).Error()
	for name, file := range files {
		found := false
		for _, problem := range problems {
			found = found || strings.Contains(problem.Error(), "/"+strings.ReplaceAll(name, " ", "-")+"/") && strings.Contains(problem.Error(), file.problem)
		}
		if !found {
			t.Errorf("no problem names %s: %s", name, text)
		}
	}
	for _, want := range []string{"/folder/", "/pipe/", "/link/", "/none/"} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem names %s: %s", want, text)
		}
	}
	if len(problems) != len(files)+4 {
		t.Error(text)
	}
}

func aliasBomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		before, now := string(rune('0'+i-1)), string(rune('0'+i))
		text += "a" + now + ": &a" + now + " [" + strings.Repeat("*a"+before+", ", 8) + "*a" + before + "]\n"
	}
	return text + "warnings: *a8\n"
}

func TestListIgnoresLinksAndOtherFolders(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	put(t, elsewhere, exampleInfo(1))
	root := t.TempDir()
	info := exampleInfo(0)
	task := filepath.Dir(filepath.Dir(put(t, root, info)))
	for link, to := range map[string]string{
		filepath.Join(root, "linked"):                                     filepath.Join(elsewhere, "demo"),
		filepath.Join(root, "demo", "linked"):                             filepath.Join(elsewhere, "demo", exampleInfo(1).TaskID),
		filepath.Join(task, runsName, exampleInfo(1).RunID):               filepath.Join(elsewhere, "demo", exampleInfo(1).TaskID, runsName, exampleInfo(1).RunID),
		filepath.Join(root, "demo", exampleInfo(2).TaskID, runsName):      filepath.Join(elsewhere, "demo", exampleInfo(1).TaskID, runsName),
		filepath.Join(root, "demo", exampleInfo(3).TaskID, runsName, "x"): filepath.Join(elsewhere),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
	}
	// A record being written, foreign notes and a new folder.
	write(t, filepath.Join(root, "notes"), "")
	write(t, filepath.Join(task, runsName, "notes"), "")
	for _, dir := range []string{".new-1", "plans", "20261121-1000000000-28482-9"} {
		if err := os.Mkdir(filepath.Join(task, runsName, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := marshalInfo(&info)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(task, runsName, ".new-1", infoName), string(text))
	list, problems, err := (&Records{Root: root}).List(t.Context(), Filter{})
	if err != nil || len(list) != 1 || list[0].RunID != info.RunID {
		t.Errorf("%+v, %v", list, err)
	}
	linked := filepath.Join(exampleInfo(2).TaskID, runsName) + " is not a folder"
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), linked) {
		t.Errorf("problems %v, want one: %s", problems, linked)
	}
	// The root may be a link: the user chose it.
	rootLink := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(root, rootLink); err != nil {
		t.Fatal(err)
	}
	if list, _, err := (&Records{Root: rootLink}).List(t.Context(), Filter{}); len(list) != 1 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestListWithoutARoot(t *testing.T) {
	t.Parallel()
	if list := mustList(t, &Records{Root: filepath.Join(t.TempDir(), "none")}, Filter{}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, _, err := (&Records{Root: file}).List(t.Context(), Filter{}); err == nil {
		t.Error("a file is a root")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	store := &Records{Root: t.TempDir()}
	put(t, store.Root, exampleInfo(0))
	if _, _, err := store.List(canceled, Filter{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestListReportsUnreadableFolders(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t) {
		return
	}
	store := &Records{Root: t.TempDir()}
	put(t, store.Root, exampleInfo(0))
	closed := filepath.Dir(filepath.Dir(put(t, store.Root, exampleInfo(1))))
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(closed, 0o700)
	list, problems, err := store.List(t.Context(), Filter{})
	if len(list) != 1 || len(problems) != 1 || err != nil {
		t.Error(list, problems, err)
	}
}

func mustList(t testing.TB, store *Records, filter Filter) []Run {
	t.Helper()
	list, problems, err := store.List(t.Context(), filter)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	return list
}

// YAML allows a zone of a whole day, JSON does not.
func TestTimesAreReadInUTC(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	path := filepath.Join(put(t, store.Root, exampleInfo(0)), infoName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), start.Format(time.RFC3339), "2026-11-22T10:00:00+24:00", 1))
	list := mustList(t, store, Filter{})
	if len(list) != 1 || !list[0].StartTime.Equal(start) {
		t.Fatalf("%+v", list)
	}
	if _, err := json.Marshal(list); err != nil {
		t.Error(err)
	}
}
