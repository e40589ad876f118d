// Package runs keeps records of runs on disk, in the layout of the Agent Protocol:
//
//	<root>/<project>/<task>/
//	    TASK.md               the prompt of the task's first run
//	    TASK-MESSAGE-BUS.md   RUN_START, RUN_STOP and RUN_CRASH of its runs
//	    runs/<run ID>/
//	        prompt.md         what the agent was given
//	        agent-stdout.txt  what it wrote, as it came
//	        agent-stderr.txt
//	        output.md         its answer
//	        run-info.yaml     what was run and what came of it; see [Info]
//	        events.ndjson     its normalized events with time stamps; see [Entry]
//
// A [Records] is the agent.Recorder that writes them, and reads them. Files are
// readable by the user alone, and hold "***" in place of each secret of the
// agent's environment; see runner.Mask.
package runs
