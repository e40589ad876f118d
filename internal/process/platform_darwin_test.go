package process

// reopens: /dev/fd/3 is opened anew and so read from its start each time.
const reopens = false

func forkChain(int) { panic("only on Linux") }

func forkPulse(int) { panic("only on Linux") }
