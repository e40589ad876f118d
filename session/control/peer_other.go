//go:build !linux && !darwin

package control

import "errors"

// socketPeer reports no peer, and so no process can connect.
func socketPeer(int) (peer, error) { return peer{}, errors.ErrUnsupported }
