package containers

import "context"

// Isolates reports whether read-only mounts are read-only here.
func Isolates(ctx context.Context) bool { return isolation(ctx) != "" }

// MaxWaiting is the limit of requests that wait.
const MaxWaiting = maxWaiting
