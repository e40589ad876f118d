package instructions

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"
)

// ownedKey is the top-level key of the mark.
const ownedKey = "busAgentOwned"

// ownedMark records what was added to a settings file. It is the value of ownedKey,
// and is always added last, after everything else.
type ownedMark struct {
	Version int    `json:"version"`
	Note    string `json:"note"`
	// Made is 1 for the file and 1 for each directory that was made.
	Made  int     `json:"made"`
	Lists []entry `json:"lists"`
	// At are the added bytes: pairs of offset and length, and the offset of the
	// span that ends with the mark. Added is the digest of them without the mark,
	// Was that of all other bytes.
	Was   string `json:"was"`
	Added string `json:"added"`
	At    []int  `json:"at"`
}

// maxLists bounds the entries of a mark: the settings are parsed for each.
const maxLists = 16

// An entry is one string that was added to a list.
type entry struct {
	Keys     []string `json:"keys"`
	Value    string   `json:"value"`
	Defaults []string `json:"defaults,omitempty"`
	// Created is the number of Keys that were missing. Wrapped reports that there
	// was a single string.
	Created int  `json:"created,omitempty"`
	Wrapped bool `json:"wrapped,omitempty"`
}

const markNote = "added by bus-agent; `bus-agent instructions clean` removes it"

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%x", sum[:12])
}

// mark returns the mark in the settings, or nil.
func (t *settings) mark() (*ownedMark, error) {
	i := memberIndex(t.top(), ownedKey)
	if i < 0 {
		return nil, nil
	}
	value := t.top().Members[i].Value.Clone()
	value.Standardize()
	var mark ownedMark
	err := json.Unmarshal(value.Pack(), &mark)
	for _, e := range mark.Lists[:min(len(mark.Lists), maxLists)] {
		err = errors.Join(err, JSONList{Keys: e.Keys, Value: e.Value, Defaults: e.Defaults}.check())
	}
	if err != nil || mark.Version != 1 || mark.Made < 0 || len(mark.Lists) > maxLists {
		return nil, fmt.Errorf("%w: %s is not what this version writes", ErrUnparsable, ownedKey)
	}
	return &mark, nil
}

// takeBack returns the settings without the additions of mark. If the file was not
// changed since, it is the original file.
func (t *settings) takeBack(mark *ownedMark) []byte {
	if data, ok := t.cutOut(mark); ok {
		return data
	}
	v := t.v.Clone()
	top := v.Value.(*hujson.Object)
	removeMember(top, memberIndex(top, ownedKey))
	for _, e := range mark.Lists {
		e.removeFrom(&v)
	}
	return v.Pack()
}

// cutOut removes the added bytes, if all bytes are unchanged.
func (t *settings) cutOut(mark *ownedMark) ([]byte, bool) {
	m := t.top().Members[memberIndex(t.top(), ownedKey)]
	start, end := m.Name.StartOffset, m.Value.EndOffset
	at := append(slices.Clone(mark.At), 0)
	if len(at)%2 != 0 || at[len(at)-2] > start || !m.Value.IsStandard() || !m.Name.AfterExtra.IsStandard() {
		return nil, false
	}
	at[len(at)-1] = start - at[len(at)-2]
	var was, added []byte
	pos := 0
	for pair := range slices.Chunk(at, 2) {
		off, n := pair[0], pair[1]
		if off < pos || n < 0 || off > start-n {
			return nil, false
		}
		was = append(was, t.data[pos:off]...)
		added = append(added, t.data[off:off+n]...)
		pos = off + n
	}
	was = append(was, t.data[end:]...)
	return was, digest(was) == mark.Was && digest(added) == mark.Added
}

// addAll adds entries and the mark to the settings old.
func addAll(old []byte, entries []entry, made int) ([]byte, error) {
	e := editor{data: slices.Clone(old)}
	for i := range entries {
		if err := e.add(&entries[i]); err != nil {
			return nil, err
		}
	}
	mark := ownedMark{Version: 1, Note: markNote, Made: made, Lists: entries, Was: digest(old)}
	if err := e.addMark(mark); err != nil {
		return nil, err
	}
	return e.data, nil
}

// isEmpty reports whether data is an object without members and comments.
func isEmpty(data []byte) bool {
	t, err := parseSettings(data)
	return err == nil && len(t.top().Members) == 0 && t.v.IsStandard()
}
