package engine

import "github.com/busdk/bus-agent/agent"

// A Delivery is the way by which messages get to an agent.
type Delivery string

// The ways of delivery.
const (
	DeliverStdin Delivery = "stdin" // lines on its standard input
	DeliverRPC   Delivery = "rpc"   // requests that it answers
	DeliverTmux  Delivery = "tmux"  // keys of its terminal
)

// ParseDelivery returns the way of delivery that word names.
func ParseDelivery(word string) (Delivery, error) {
	switch d := Delivery(word); d {
	case DeliverStdin, DeliverRPC, DeliverTmux:
		return d, nil
	}
	return "", agent.Usagef("%q is no way of delivery; it is stdin, rpc or tmux", word)
}
