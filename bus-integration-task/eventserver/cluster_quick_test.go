//go:build !soak

package eventserver_test

const clusterSteps = 4
