package control

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/busdk/bus-agent/agent"
)

// The variables of the environment contract.
const (
	EnvSessionID = "GT_SESSION_ID"
	EnvRole      = "GT_ROLE"
	EnvRig       = "GT_RIG"
	EnvPolecat   = "GT_POLECAT"
	EnvActor     = "BD_ACTOR"
	EnvWorkdir   = "GT_WORKDIR"
	// EnvSessionIDEnv holds the name of the variable with the ID, if it is not
	// EnvSessionID.
	EnvSessionIDEnv = "GT_SESSION_ID_ENV"
)

// An Identity is who an agent is in its session. Its own tools and hooks read it
// from the variables of the environment contract.
type Identity struct {
	SessionID string `json:"session_id,omitempty"` // GT_SESSION_ID, and the runtime's own variable
	Role      string `json:"role,omitempty"`       // GT_ROLE
	Rig       string `json:"rig,omitempty"`        // GT_RIG
	Polecat   string `json:"polecat,omitempty"`    // GT_POLECAT
	Actor     string `json:"actor,omitempty"`      // BD_ACTOR
}

// identityOf reads an Identity from an environment. The ID is that of
// GT_SESSION_ID, or else of the variable that GT_SESSION_ID_ENV names, or else of
// native, the runtime's own variable, which may be empty.
func identityOf(environ []string, native string) Identity {
	get := func(name string) string {
		value, _ := agent.LookupEnv(environ, name)
		return value
	}
	id := Identity{
		SessionID: get(EnvSessionID), Role: get(EnvRole), Rig: get(EnvRig),
		Polecat: get(EnvPolecat), Actor: get(EnvActor),
	}
	for _, name := range []string{get(EnvSessionIDEnv), native} {
		if id.SessionID == "" && name != "" {
			id.SessionID = get(name)
		}
	}
	return id
}

// environ returns the variables that give an agent the identity and its workdir,
// "NAME=value". The runtime's own variable gets the ID too, unless native is empty.
// Empty values set no variable.
func (id Identity) environ(native, workdir string) []string {
	var environ []string
	for _, v := range []struct{ name, value string }{
		{EnvSessionID, id.SessionID}, {native, id.SessionID}, {EnvRole, id.Role}, {EnvRig, id.Rig},
		{EnvPolecat, id.Polecat}, {EnvActor, id.Actor}, {EnvWorkdir, workdir},
	} {
		if v.name != "" && v.value != "" {
			environ = append(environ, v.name+"="+v.value)
		}
	}
	if id.SessionID != "" {
		// One that was inherited may lead to the ID of another session.
		environ = append(environ, EnvSessionIDEnv+"="+EnvSessionID)
	}
	return environ
}

// newID returns an ID that, most likely, no other session has.
func newID() string {
	var id [idLength / 2]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
