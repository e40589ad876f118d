package cursor

import "github.com/busdk/bus-agent/agent"

// command builds the argument list. The ID of a session is joined to its option
// with "=", because the option can also stand alone.
func command(r agent.Request) (agent.Command, error) {
	args := []string{"-p", "--output-format", "stream-json", "--trust"}
	if r.Resolved.Root != "" {
		args = append(args, "--workspace", r.Resolved.Root)
	}
	args = append(args, accessArgs(r.Access)...)
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if id := r.Resolved.Setup.ResumeID; id != "" {
		args = append(args, "--resume="+id)
	} else if r.Continue {
		args = append(args, "--continue")
	}
	args = append(args, r.Resolved.Setup.Args...)
	args = append(args, r.Args...)
	return agent.Command{
		Args:  args,
		Stdin: agent.GuardSlash(r.Resolved.Setup.Prefix + r.Prompt),
	}, nil
}

func accessArgs(access agent.Access) []string {
	switch access {
	case agent.AccessRead:
		return []string{"--mode", "ask"}
	case agent.AccessFull:
		return []string{"--force", "--sandbox", "disabled"}
	default:
		return []string{"--force", "--sandbox", "enabled"}
	}
}
