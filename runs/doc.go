// Package runs keeps records of runs on disk, in the layout of the Agent Protocol:
//
//	<root>/<project>/<task>/
//	    TASK.md               the prompt of the task's first run
//	    TASK-MESSAGE-BUS.md   RUN_START, RUN_STOP and RUN_CRASH of its runs
//	    runs/<run ID>/
//	        prompt.md         the agent's prompt
//	        agent-stdout.txt  its output, unchanged but for secrets
//	        agent-stderr.txt
//	        output.md         its answer
//	        run-info.yaml     what was run, and its result; see [Info]
//	        events.ndjson     its normalized events with their time; see [Event]
//
// [Records] is the agent.Recorder that writes them; it reads them too. The files are
// readable by the user alone, and have "***" in place of each secret of the agent's
// environment; see runner.Mask.
package runs
