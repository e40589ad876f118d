//go:build !soak

package soak

// large says that everything has its full size.
const large = false
