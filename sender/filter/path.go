package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// path are the names of members, from the event's body on.
type path []string

var escaper = strings.NewReplacer(`\`, `\\`, `.`, `\.`)

// String is the path as it is written.
func (p path) String() string {
	names := make([]string, len(p))
	for i, name := range p {
		names[i] = escaper.Replace(name)
	}
	return strings.Join(names, ".")
}

// parsePath returns what is wrong, and what would be right.
func parsePath(text string) (p path, err error) {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.':
			p = append(p, name.String())
			name.Reset()
		case c == '\\' && (i+1 == len(text) || text[i+1] != '.' && text[i+1] != '\\'):
			return nil, errors.New(`a backslash stands before a dot or a backslash that belongs to a name: write \\ for a backslash itself`)
		case c == '\\':
			i++
			name.WriteByte(text[i])
		default:
			name.WriteByte(c)
		}
	}
	p = append(p, name.String())
	switch {
	case p[0] != "data" && !slices.Equal(p, path{"object", "type"}) && !slices.Equal(p, path{"object", "id"}):
		return nil, fmt.Errorf(`it is neither "and", "or", "not" nor a path: a path begins with "data.", such as %q, or is "object.type" or "object.id"`, "data."+bounded(strings.TrimLeft(text, "$."), 40))
	case len(p) > MaxNames:
		return nil, fmt.Errorf("the path has %d names: at most %d are allowed", len(p), MaxNames)
	case slices.Contains(p, "") && strings.HasSuffix(text, "."):
		return nil, errors.New("the path ends with a dot: a name follows each dot")
	}
	return p, nil
}

// step is a name of a path, or the body itself.
type step struct {
	name    string
	next    []*step
	clauses uint64    // all that are decided here and below: see sum
	exists  uint64    // those that hold if it is there
	tests   []*clause // of values
}

// to returns the step to which a path leads, and makes what is missing.
func (s *step) to(p path) *step {
	for _, name := range p {
		i := slices.IndexFunc(s.next, func(n *step) bool { return n.name == name })
		if i < 0 {
			i = len(s.next)
			s.next = append(s.next, &step{name: name})
		}
		s = s.next[i]
	}
	return s
}

// sum notes the clauses at this step and below it, and returns them.
func (s *step) sum() uint64 {
	s.clauses = s.exists
	for _, t := range s.tests {
		s.clauses |= t.bit
	}
	for _, n := range s.next {
		s.clauses |= n.sum()
	}
	return s.clauses
}
