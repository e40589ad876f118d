package eventserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// leeway is how far the clocks of the server and of who minted a token may differ.
const leeway = 5 * time.Second

// identity is who sends a request.
type identity struct {
	name    string
	scopes  []string
	expires time.Time // when the token is no longer accepted
}

func (i identity) has(scopes ...string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(i.scopes, s) })
}

type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope"`
}

// authenticate verifies the token of a request. It must be signed with HS256, be for the
// audience, and have a subject and an expiry.
func (s *Server) authenticate(r *http.Request) (identity, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return identity{}, errors.New("no bearer token")
	}
	var c claims
	_, err := jwt.ParseWithClaims(strings.TrimSpace(text), &c, func(*jwt.Token) (any, error) { return s.config.Secret, nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience(s.config.Audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(s.config.Now))
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return identity{}, errors.New("the token has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return identity{}, errors.New("the token is for another audience")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return identity{}, errors.New("the token has no audience or no expiry")
	case err != nil:
		return identity{}, errors.New("the token is not valid")
	case !validSubject(c.Subject):
		return identity{}, errors.New("the subject of the token is missing or not 1 to 128 printable characters")
	}
	return identity{c.Subject, strings.Fields(c.Scope), c.ExpiresAt.Add(leeway)}, nil
}

func validSubject(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Scopes that tokens can have.
const (
	ScopeSend            = "events:send"   // every publish
	ScopeListen          = "events:listen" // every stream
	ScopeTaskSend        = "task:send"
	ScopeTaskRead        = "task:read"
	ScopeTaskReply       = "task:reply"
	ScopeTaskClaim       = "task:claim"
	ScopeTaskAdmin       = "task:admin" // stands for all of task:*
	ScopeContainerRun    = "container:run"
	ScopeContainerRead   = "container:read"
	ScopeContainerDelete = "container:delete"
	ScopeContainerAdmin  = "container:admin" // stands for all of container:*
)

// taskScopes are the scopes with any of which an event of a task can be published.
// Names that are not here need ScopeTaskAdmin.
var taskScopes = map[string][]string{
	"bus.task.created":            {ScopeTaskSend},
	"bus.task.approved":           {ScopeTaskSend},
	"bus.task.assigned":           {ScopeTaskSend},
	"bus.task.reopened":           {ScopeTaskSend},
	"bus.task.approval.answered":  {ScopeTaskSend},
	"bus.task.canceled":           {ScopeTaskSend, ScopeTaskReply},
	"bus.task.message":            {ScopeTaskSend, ScopeTaskReply},
	"bus.task.claimed":            {ScopeTaskClaim},
	"bus.task.progress":           {ScopeTaskReply},
	"bus.task.released":           {ScopeTaskReply},
	"bus.task.approval.requested": {ScopeTaskReply},
	"bus.task.done":               {ScopeTaskReply},
	"bus.task.blocked":            {ScopeTaskReply},
	"bus.task.failed":             {ScopeTaskReply},
	"bus.task.closed":             {ScopeTaskReply},
}

// allow returns an error that names the missing scope.
func (i identity) allow(name string, listen bool) error {
	general, special := ScopeSend, []string(nil)
	switch {
	case listen:
		general = ScopeListen
		if isTaskName(name) {
			special = []string{ScopeTaskRead, ScopeTaskAdmin}
		} else if strings.HasPrefix(name, "bus.containers.") {
			special = []string{ScopeContainerRead, ScopeContainerRun, ScopeContainerAdmin}
		}
	case isTaskName(name):
		special = append(slices.Clone(taskScopes[name]), ScopeTaskAdmin)
	case strings.HasPrefix(name, "bus.containers.status."):
		special = []string{ScopeContainerRead, ScopeContainerAdmin}
	case strings.HasPrefix(name, "bus.containers.delete."):
		special = []string{ScopeContainerDelete, ScopeContainerAdmin}
	case strings.HasPrefix(name, "bus.containers.runner."):
		special = []string{ScopeContainerAdmin}
	case strings.HasPrefix(name, "bus.containers."):
		special = []string{ScopeContainerRun, ScopeContainerAdmin}
	}
	if !i.has(general) {
		return fmt.Errorf("the token lacks the scope %s", general)
	}
	if len(special) > 0 && !i.has(special...) {
		return fmt.Errorf("the token lacks the scope %s for %s", strings.Join(special, " or "), name)
	}
	return nil
}

// MintOptions describe a token.
type MintOptions struct {
	Subject  string        // identity; required
	Scopes   []string      // at least one
	Lifetime time.Duration // required, at least a second
	Audience string        // DefaultAudience if empty
	Now      func() time.Time
}

// Mint returns a token, signed with HS256.
func Mint(secret []byte, o MintOptions) (string, error) {
	switch {
	case len(secret) < MinSecretBytes:
		return "", fmt.Errorf("secret: %d bytes: at least %d are needed", len(secret), MinSecretBytes)
	case !validSubject(o.Subject):
		return "", errors.New("subject: not 1 to 128 printable characters without spaces")
	case o.Lifetime < time.Second:
		return "", errors.New("lifetime: less than a second")
	case len(o.Scopes) == 0:
		return "", fmt.Errorf("scopes: none; use for example %s", ScopeListen)
	}
	for _, scope := range o.Scopes {
		if !validSubject(scope) {
			return "", fmt.Errorf("scope %q: not one word", scope)
		}
	}
	set(&o.Audience, DefaultAudience)
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	issued := now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": o.Subject, "aud": o.Audience, "scope": strings.Join(o.Scopes, " "),
		"iat": issued.Unix(), "exp": issued.Add(o.Lifetime).Unix(),
	}).SignedString(secret)
}
