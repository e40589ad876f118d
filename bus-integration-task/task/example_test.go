package task_test

import (
	"fmt"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// A worker applies the log of a task and asks what to do.
func ExampleState_Decide() {
	var s task.State
	for i, e := range []struct{ name, payload string }{
		{task.Created, `{"work_ref":"busdk#81.1","recipient":"bus-dev","text":"Fix the parser"}`},
		{task.Claimed, `{"work_ref":"busdk#81.1","worker_id":"w1","attempt_id":"a1","lease_seconds":60}`},
	} {
		event, err := task.Decode(fmt.Sprintf("evt_%019d", i+1), e.name, "example", time.Time{}, []byte(e.payload))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Apply(event).Kind, s.Status)
	}
	w := task.Worker{ID: "w2", Recipient: "bus-dev"}
	fmt.Println(s.Decide(w, 10*time.Second).Wait)
	fmt.Println(s.Decide(w, time.Minute).Supersedes)
	// Output:
	// opened open
	// claimed claimed
	// 50s
	// a1
}
