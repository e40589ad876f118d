// Package more describes further agent CLIs.
package more
