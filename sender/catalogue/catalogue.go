package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Catalogue has types that were checked. It does not change, and is safe for concurrent use.
type Catalogue struct {
	types []Type
	by    map[string]int
}

// New returns a catalogue of types, in their order. The error has all that is wrong with
// them.
func New(types []Type) (*Catalogue, error) {
	c := &Catalogue{by: make(map[string]int, len(types))}
	for i := range types {
		c.types = append(c.types, types[i].clone())
	}
	var errs []error
	if len(types) == 0 {
		errs = append(errs, errors.New("sender/catalogue: New needs types: give one or more"))
	}
	for i := range c.types {
		t := &c.types[i]
		problems := t.problems()
		if _, twice := c.by[t.Name]; twice {
			problems = append(problems, errors.New("it is there twice"))
		}
		c.by[t.Name] = i
		for _, err := range problems {
			errs = append(errs, fmt.Errorf("sender/catalogue: type %d, %q: %w", i, t.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

func (t Type) clone() Type {
	t.Versions = slices.Clone(t.Versions)
	for i := range t.Versions {
		t.Versions[i].Examples = slices.Clone(t.Versions[i].Examples)
	}
	return t
}

// Types returns the types, in their order.
func (c *Catalogue) Types() []Type {
	all := make([]Type, len(c.types))
	for i := range c.types {
		all[i] = c.types[i].clone()
	}
	return all
}

// Lookup returns a type by its name.
func (c *Catalogue) Lookup(name string) (Type, bool) {
	i, ok := c.by[name]
	if !ok {
		return Type{}, false
	}
	return c.types[i].clone(), true
}

// Group is a heading with its types.
type Group struct {
	Name  string
	Types []Type
}

// Groups returns the types under their headings. The groups are in the order in which they
// first appear.
func (c *Catalogue) Groups() (groups []Group) {
	at := map[string]int{}
	for _, t := range c.Types() {
		i, ok := at[t.Group]
		if !ok {
			i = len(groups)
			at[t.Group] = i
			groups = append(groups, Group{Name: t.Group})
		}
		groups[i].Types = append(groups[i].Types, t)
	}
	return groups
}

// Dates are the dates of all versions, the newest first: what a subscription can be pinned
// to. A version that has been there from the beginning has none.
func (c *Catalogue) Dates() (dates []string) {
	for i := range c.types {
		for _, v := range c.types[i].Versions {
			if v.Since != "" {
				dates = append(dates, v.Since)
			}
		}
	}
	slices.Sort(dates)
	dates = slices.Compact(dates)
	slices.Reverse(dates)
	return dates
}

// Newest is the newest date, or "" if there is none. New subscriptions are pinned to it.
func (c *Catalogue) Newest() string {
	if dates := c.Dates(); len(dates) > 0 {
		return dates[0]
	}
	return ""
}

// Facts are the names of the types whose Kind is Fact, without those of [Own]: of a notice and
// of a job's end, the newest about an object says it all. A registry has them as
// sender.RegistryConfig.Facts.
func (c *Catalogue) Facts() (names []string) {
	own := map[string]bool{}
	for _, t := range Own() {
		own[t.Name] = true
	}
	for i := range c.types {
		if t := &c.types[i]; t.Kind == Fact && !own[t.Name] {
			names = append(names, t.Name)
		}
	}
	return names
}

// PayloadVersion is the date of a type's newest version, in which it is published; "" if it
// has none, or there is no such type.
func (c *Catalogue) PayloadVersion(eventType string) string {
	i, ok := c.by[eventType]
	if !ok {
		return ""
	}
	return c.types[i].Newest().Since
}

// CheckVersion refuses a version that a type does not have: no process could make an older one
// of it. A type that is not in the catalogue is not converted, and has any.
func (c *Catalogue) CheckVersion(eventType, version string) error {
	i, ok := c.by[eventType]
	if !ok {
		return nil
	}
	t := &c.types[i]
	if t.At(version).Since == version {
		return nil
	}
	var dates []string
	for _, v := range t.Versions {
		if v.Since != "" {
			dates = append(dates, strconv.Quote(v.Since))
		}
	}
	have := "it has one version: leave it out"
	if dates != nil {
		have = "leave it out for the newest, or give " + strings.Join(dates, " or ")
	}
	return fmt.Errorf("sender/catalogue: type %q has no payload version %q: %s", eventType, version, have)
}

// MarshalJSON encodes the catalogue's state, for [Read]: all of it but the converters.
func (c *Catalogue) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Types []Type `json:"types"`
	}{c.types})
}

// Read decodes a state that MarshalJSON has encoded, for [Compare].
func Read(state []byte) ([]Type, error) {
	var s struct {
		Types []Type `json:"types"`
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, fmt.Errorf("sender/catalogue: this is no state of a catalogue: %w", err)
	}
	if len(s.Types) == 0 {
		return nil, errors.New("sender/catalogue: this is no state of a catalogue: it has no types")
	}
	for i := range s.Types {
		if t := &s.Types[i]; len(t.Versions) == 0 {
			return nil, fmt.Errorf("sender/catalogue: this is no state of a catalogue: type %d, %q, has no versions", i, t.Name)
		}
	}
	return s.Types, nil
}
