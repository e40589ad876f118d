package registry

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/agent"
)

var (
	// ErrDuplicate is matched by the error of registering an ID twice.
	ErrDuplicate = errors.New("runtime already registered")
	// ErrInvalid is matched by the error of registering a runtime that lacks
	// a required field or has an invalid one.
	ErrInvalid = errors.New("invalid runtime")
)

// A Registry is a table of runtimes. Its zero value is empty and ready to use.
// All methods may be called by several goroutines at once. Runtimes are never
// removed.
type Registry struct {
	mu      sync.RWMutex
	entries []entry // sorted by ID
	refused map[string]error
}

type entry struct {
	id   string
	get  func() *Runtime // the same one each time
	site site
}

var std Registry

// Default returns the registry that the package-level [Register] fills. Using
// it is optional: any other Registry works the same.
func Default() *Registry { return &std }

// Register adds rt to the default registry. Runtime packages call it in init.
// It panics with the error of [Registry.Register], since an invalid or
// repeated runtime is a bug in the program.
func Register(rt Runtime) {
	if err := std.register(rt, callSite()); err != nil {
		panic(err)
	}
}

// RegisterFunc adds to the default registry the runtime with this ID that describe
// returns, as [Registry.RegisterFunc] does. It panics with its error.
func RegisterFunc(id string, describe func() Runtime) {
	if err := std.registerFunc(id, describe, callSite()); err != nil {
		panic(err)
	}
}

// Register adds rt. The error matches [ErrInvalid] and says what is wrong with rt, or
// matches [ErrDuplicate] and names both places that registered the ID.
func (r *Registry) Register(rt Runtime) error { return r.register(rt, callSite()) }

func (r *Registry) register(rt Runtime, site site) error {
	if err := rt.Check(); err != nil {
		return invalid(rt.ID, site, err)
	}
	return r.add(entry{rt.ID, func() *Runtime { return &rt }, site})
}

// RegisterFunc adds the runtime with this ID that describe returns. It is for packages
// with many runtimes: describe is called once, when the registry is first asked for a
// runtime, by one goroutine, and must not use the registry. The error is that of
// [Registry.Register]; what is wrong with the runtime itself is a bug in the program and
// a panic when it is described.
func (r *Registry) RegisterFunc(id string, describe func() Runtime) error {
	return r.registerFunc(id, describe, callSite())
}

func (r *Registry) registerFunc(id string, describe func() Runtime, site site) error {
	if !ValidID(id) {
		return invalid(id, site, errID)
	}
	return r.add(entry{id, sync.OnceValue(func() *Runtime {
		rt := describe()
		err := rt.Check()
		if err == nil && rt.ID != id {
			err = fmt.Errorf("it is described with the ID %q", rt.ID)
		}
		if err != nil {
			panic(invalid(id, site, err))
		}
		return &rt
	}), site})
}

func invalid(id string, site site, err error) error {
	return fmt.Errorf("registry: %w %q at %s: %w", ErrInvalid, id, site, err)
}

func (r *Registry) add(e entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearchFunc(r.entries, e.id, func(e entry, id string) int {
		return strings.Compare(e.id, id)
	})
	if found {
		return fmt.Errorf("registry: %w: %q at %s; first at %s", ErrDuplicate, e.id, e.site, r.entries[i].site)
	}
	r.entries = slices.Insert(r.entries, i, e)
	delete(r.refused, e.id)
	return nil
}

// Replace registers rt in the place of the runtime with its ID, which must be registered.
// Reasons given to [Registry.Refuse] stay.
func (r *Registry) Replace(rt Runtime) error {
	if err := rt.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.entries {
		if r.entries[i].id == rt.ID {
			r.entries[i].get = func() *Runtime { return &rt }
			return nil
		}
	}
	return fmt.Errorf("registry: %q is not registered", rt.ID)
}

// Clone returns a registry with the same content. What is added to one is not
// added to the other.
func (r *Registry) Clone() *Registry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &Registry{entries: slices.Clone(r.entries), refused: maps.Clone(r.refused)}
}

// Refuse records why the runtime with the given ID is not registered. The error of
// [Registry.ParseToken] gives the reason, unless one with that ID is registered after
// all. Registering one later removes the reason.
func (r *Registry) Refuse(id string, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == nil {
		r.refused = make(map[string]error)
	}
	r.refused[id] = reason
}

// Refused returns the reason given to [Registry.Refuse] for an ID; nil where
// there is none.
func (r *Registry) Refused(id string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.refused[id]
}

// AllRefused returns the IDs that have a reason of [Registry.Refuse], sorted.
func (r *Registry) AllRefused() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.refused))
}

// A site is the place of a registration. It is looked up only for an error:
// programs start with several registrations.
type site uintptr

// callSite returns the place that called the caller.
func callSite() site {
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	return site(pcs[0])
}

func (s site) String() string {
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(s)}).Next()
	return fmt.Sprintf("%s:%d", frame.File, frame.Line)
}

// Lookup returns the runtime with the given ID.
func (r *Registry) Lookup(id string) (Runtime, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.entries {
		if e.id == id {
			return *e.get(), true
		}
	}
	return Runtime{}, false
}

// All returns every runtime, sorted by ID.
func (r *Registry) All() []Runtime {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]Runtime, len(r.entries))
	for i, e := range r.entries {
		all[i] = *e.get()
	}
	return all
}

// Tokens returns every name a runtime can be selected by, sorted: IDs and
// "ID:variant".
func (r *Registry) Tokens() []string {
	var tokens []string
	for _, rt := range r.All() {
		tokens = append(tokens, rt.ID)
		for _, v := range rt.Variants {
			tokens = append(tokens, rt.ID+":"+v)
		}
	}
	slices.Sort(tokens)
	return tokens
}

// ParseToken returns the runtime and the variant that token names: "codex" or
// "codex:local". For an unknown one the error is of kind agent.ErrUsage and
// lists the known ones, or gives the reason of [Registry.Refuse].
func (r *Registry) ParseToken(token string) (rt Runtime, variant string, err error) {
	id, variant, colon := strings.Cut(token, ":")
	rt, ok := r.Lookup(id)
	if ok && (!colon || slices.Contains(rt.Variants, variant)) {
		return rt, variant, nil
	}
	if reason := r.Refused(id); reason != nil && !ok {
		return Runtime{}, "", agent.Usagef("runtime %q cannot be used: %w", token, reason)
	}
	known := strings.Join(r.Tokens(), ", ")
	if known == "" {
		known = "none; import a package under backends"
	}
	return Runtime{}, "", agent.Usagef("unknown runtime %q (known: %s)", token, known)
}

// ForeignEnv returns the names of the variables that a recorded run of rt goes
// without, sorted; see [Runtime.ProviderEnv] and [Runtime.NestedEnv].
func (r *Registry) ForeignEnv(rt Runtime) []string {
	own := slices.Concat(rt.TokenEnv, rt.ProviderEnv)
	var foreign []string
	for _, other := range r.All() {
		foreign = append(foreign, other.NestedEnv...)
		for _, name := range slices.Concat(other.TokenEnv, other.ProviderEnv) {
			if len(own) > 0 && !slices.Contains(own, name) {
				foreign = append(foreign, name)
			}
		}
	}
	slices.Sort(foreign)
	return slices.Compact(foreign)
}

// Recognize returns the runtime whose agent must have written line.
func (r *Registry) Recognize(line []byte) (Runtime, bool) {
	for _, rt := range r.All() {
		if rt.Recognize != nil && rt.Recognize(line) {
			return rt, true
		}
	}
	return Runtime{}, false
}
