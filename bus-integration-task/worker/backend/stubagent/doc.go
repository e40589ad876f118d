// Package stubagent is a Codex App Server without a model, for tests and demonstrations
// of workers. It starts no command and uses no network.
//
// [Install] puts it under the name of the CLI into a folder. The executable is the
// running program itself, so main or TestMain must call [Play] first.
//
// A prompt says what it does, in lines that begin with "stub: "; it ignores all others.
// The steps of a turn are done in order:
//
//	say TEXT            answers with TEXT
//	stream N            answers in N pieces
//	run CODE COMMAND    reports COMMAND as run, with the exit code CODE
//	write FILE TEXT     writes TEXT and a line feed to FILE, and reports the change
//	plan DONE ALL       reports a plan of ALL steps, of which DONE are completed
//	ask COMMAND         requests approval and answers with the decision
//	question TEXT       asks the user and answers with the number of answers
//	guide               waits for a message that steers the turn, and does its steps or
//	                    else answers with it
//	late                waits for a message that steers the turn; those of the turn are
//	                    refused at its end
//	await FILE          waits until FILE exists
//	touch FILE          makes FILE, to tell a test
//	thread              answers with the ID of the thread and the number of its turns
//	env NAME            answers with the value of a variable
//	quota, logout       ends the turn as out of quota, or as not logged in
//	fail TEXT           ends the turn as failed
//	die CODE            exits
//	hang                waits until the turn is interrupted
package stubagent
