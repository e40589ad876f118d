package fallback

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// readRests notes which candidates rest.
func (c *call) readRests(all candidates) {
	if c.f.Cooldown < 0 {
		return
	}
	c.store = c.f.Cooldowns
	if c.store == nil {
		environ := c.loud.Environ
		if environ == nil {
			environ = os.Environ()
		}
		dir, err := DefaultDir(environ)
		if err != nil {
			c.warn(fmt.Sprintf("no runtime rests: %v", err))
			return
		}
		c.store = NewCooldowns(dir)
	}
	now := c.now()
	for i := range all {
		rest, ok, err := c.store.Get(all[i].token, now)
		if err != nil {
			c.warn(fmt.Sprintf("%s is taken for awake: %v", all[i].token, err))
		}
		if ok {
			all[i].cooldown = &rest
		}
	}
}

// remember lets a runtime rest after a run that ended with err, or ends its rest.
// What cannot be written is a warning.
func (c *call) remember(token string, err error) {
	if c.store == nil || token == "" {
		return
	}
	length := time.Duration(0)
	switch {
	case err == nil:
		if _, err := c.store.Clear(token); err != nil {
			c.warn(fmt.Sprintf("%s goes on resting: %v", token, err))
		}
		return
	case errors.Is(err, agent.ErrQuota):
		length = QuotaCooldown
	case errors.Is(err, agent.ErrAuthentication):
		length = AuthenticationCooldown
	default:
		return
	}
	if c.f.Cooldown > 0 {
		length = c.f.Cooldown
	}
	now := c.now().UTC().Round(0) // without the clock that other processes do not have
	rest := Cooldown{Runtime: token, Kind: agent.KindOf(err), Reason: reason(err), Since: now, Until: now.Add(length)}
	if err := c.store.Put(rest); err != nil {
		c.warn(fmt.Sprintf("%s does not rest: %v", token, err))
	}
}
