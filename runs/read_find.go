package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// Latest is a handle for the run that began last. If its record cannot be read, Find
// fails.
const Latest = "latest"

// Find returns the run that a handle names: a run ID, the beginning or the end of one, or
// [Latest], optionally after its task, or its project and task, with slashes between; or
// the path of its folder. A handle of no run or of several is an agent.ErrUsage error.
func (s *Records) Find(ctx context.Context, handle string) (Run, error) {
	filter, id, ok := s.parseHandle(handle)
	if !ok {
		return Run{}, agent.Usagef("%q does not name a run of %s", handle, s.Root)
	}
	if id == Latest {
		filter.Limit = 1
		list, problems, err := s.List(ctx, filter)
		switch {
		case err != nil:
			return Run{}, err
		case len(list) > 0:
			if problem := newerProblem(&list[0], problems); problem != nil {
				return Run{}, fmt.Errorf("the record of the latest run cannot be read: %w", problem)
			}
			return list[0], nil
		case len(problems) > 0:
			return Run{}, problems[0]
		}
		return Run{}, s.noRun(handle)
	}
	candidates, problems, err := s.candidates(ctx, &filter)
	if err != nil {
		return Run{}, err
	}
	found := named(candidates, id)
	switch len(found) {
	case 0:
		if len(problems) > 0 { // it may exist
			return Run{}, problems[0]
		}
		return Run{}, s.noRun(handle)
	case 1:
		return ReadRun(found[0].dir())
	}
	return Run{}, s.ambiguous(handle, found)
}

// newerProblem returns the problem of a run that began after this one, by their IDs.
func newerProblem(run *Run, problems []error) error {
	id := filepath.Base(run.Dir)
	at, ok := timeOf(id)
	if !ok {
		at = run.StartTime
	}
	for _, problem := range problems {
		damaged, ok := errors.AsType[*damagedRun](problem)
		if ok && !damaged.at.Equal(farFuture) && cmp.Or(damaged.at.Compare(at), strings.Compare(damaged.id, id)) > 0 {
			return problem
		}
	}
	return nil
}

// parseHandle splits a handle.
func (s *Records) parseHandle(handle string) (filter Filter, id string, ok bool) {
	if filepath.IsAbs(handle) {
		below, err := filepath.Rel(s.Root, handle)
		if err != nil {
			return filter, "", false
		}
		handle = below
	}
	parts := strings.Split(strings.TrimSuffix(handle, "/"), "/")
	for _, part := range parts {
		if !isFolderName(part) {
			return filter, "", false
		}
	}
	id = parts[len(parts)-1]
	switch {
	case len(parts) == 1:
	case len(parts) == 2:
		filter.Task = parts[0]
	case len(parts) == 3, len(parts) == 4 && parts[2] == runsName:
		filter.Project, filter.Task = parts[0], parts[1]
	default:
		return filter, "", false
	}
	return filter, id, true
}

// named returns the candidates with an ID, or else with such a beginning or end.
func named(candidates []candidate, id string) []candidate {
	var same, similar []candidate
	for _, c := range candidates {
		switch {
		case c.id == id:
			same = append(same, c)
		case strings.HasPrefix(c.id, id), strings.HasSuffix(c.id, id):
			similar = append(similar, c)
		}
	}
	if len(same) > 0 {
		return same
	}
	return similar
}

func (s *Records) noRun(handle string) error {
	return agent.Usagef("there is no run %q in %s", handle, s.Root)
}

// ambiguous returns an error that lists the runs a handle may mean, the newest of many.
func (s *Records) ambiguous(handle string, found []candidate) error {
	const most = 8
	var b strings.Builder
	for _, c := range found[:min(most, len(found))] {
		project, task := filepath.Base(filepath.Dir(c.task)), filepath.Base(c.task)
		b.WriteString("\n  " + project + "/" + task + "/" + c.id)
	}
	if len(found) > most {
		b.WriteString("\n  …")
	}
	return agent.Usagef("%d runs can be meant by %q; write more of one:%s", len(found), handle, b.String())
}
