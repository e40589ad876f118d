package fallback

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// readCooldowns sets the cooldowns of the candidates. What cannot be read is a
// warning.
func (c *call) readCooldowns(all candidates) {
	if c.f.Cooldown < 0 {
		return
	}
	c.cooldowns = c.f.Cooldowns
	if c.cooldowns == nil {
		environ := c.loud.Environ
		if environ == nil {
			environ = os.Environ()
		}
		dir, err := DefaultDir(environ)
		if err != nil {
			c.warn(fmt.Sprintf("cannot read cooldowns; ignoring them: %v", err))
			return
		}
		c.cooldowns = NewCooldowns(dir)
	}
	now := c.now()
	for i := range all {
		cooldown, ok, err := c.cooldowns.Get(all[i].token, now)
		if err != nil {
			c.warn(fmt.Sprintf("cooldown file of %s unreadable; ignoring it: %v", all[i].token, err))
		}
		if ok {
			all[i].cooldown = &cooldown
		}
	}
}

// remember starts the cooldown of a runtime after a run that ended with err, or
// clears it after a success. What cannot be written is a warning.
func (c *call) remember(token string, err error) {
	if c.cooldowns == nil || token == "" {
		return
	}
	length := time.Duration(0)
	switch {
	case err == nil:
		if _, err := c.cooldowns.Clear(token); err != nil {
			c.warn(fmt.Sprintf("cannot clear the cooldown of %s: %v", token, err))
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
		length = min(c.f.Cooldown, MaxCooldown)
	}
	now := c.now().UTC().Round(0) // without the monotonic clock, which is of this process
	cooldown := Cooldown{Runtime: token, Kind: agent.KindOf(err), Reason: reason(err), Since: now, Until: now.Add(length)}
	if err := c.cooldowns.Put(cooldown); err != nil {
		c.warn(fmt.Sprintf("cannot store the cooldown of %s: %v", token, err))
	}
}
