//go:build !soak

package preferences

const killRounds = 6
