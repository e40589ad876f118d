//go:build !soak || !linux

package eventserver_test

const clusterSteps = 4
