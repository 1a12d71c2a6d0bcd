package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Reason is a clause that keeps an event from matching, and what the event has instead.
type Reason struct {
	Clause string // such as data.status = "paid"; cut if it is long
	Found  string // such as "open", or missing; cut if it is long
}

// String says both: data.status = "paid" does not hold: it is "open".
func (r Reason) String() string {
	return r.Clause + " does not hold: " + r.Found
}

const (
	mostReasons = 4
	mostClause  = 160 // bytes
	mostFound   = 64  // bytes of a value
	mostValues  = 3
)

// Explain says why a body does not match: of clauses that all must hold the first that does
// not, of "or" each of the first few. It returns none if the body matches. It shows parts of
// the body: they are for those who may read it. It reads to the end where Match has seen
// enough, so the two may say different things of bytes that are no JSON.
func (f *Filter) Explain(body []byte) []Reason {
	switch {
	case f == nil:
		return nil
	case f.unreadable != nil:
		return []Reason{{Clause: "the filter", Found: "what is stored cannot be read"}}
	case len(body) == 0:
		return []Reason{{Clause: "the filter", Found: "the body was redacted"}}
	}
	e := explanation{found: map[*step]*found{}, paths: &f.paths}
	s := scan{body: body, saw: e.saw}
	s.value(&f.paths)
	e.held = s.held
	if f.root.holds(s.held) {
		return nil
	}
	e.failed(f.root)
	return e.reasons
}

type explanation struct {
	held    uint64
	paths   *step
	found   map[*step]*found
	reasons []Reason
}

// found are the values at a step.
type found struct {
	first []string
	n     int
}

func (e *explanation) saw(at *step, value []byte) {
	of := e.found[at]
	if of == nil {
		of = &found{}
		e.found[at] = of
	}
	if of.n++; of.n <= mostValues {
		of.first = append(of.first, shown(value))
	}
}

// failed adds the reasons why a clause does not hold.
func (e *explanation) failed(c *clause) {
	if len(e.reasons) == mostReasons {
		return
	}
	switch c.kind {
	case all:
		for _, p := range c.parts {
			if !p.holds(e.held) {
				e.failed(p)
				return
			}
		}
	case some:
		for _, p := range c.parts {
			e.failed(p)
		}
	case none:
		found := "it holds"
		if p := c.parts[0]; p.path != nil {
			found = e.at(p)
		}
		e.reasons = append(e.reasons, Reason{"not " + c.parts[0].words(), found})
	default:
		e.reasons = append(e.reasons, Reason{c.words(), e.at(c)})
	}
}

// at tells what there is at a clause's path.
func (e *explanation) at(c *clause) string {
	of := e.found[e.paths.to(c.path)]
	if of == nil {
		return "it is missing"
	}
	text := "it is " + strings.Join(of.first, ", ")
	if more := of.n - len(of.first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// words says a clause for people.
func (c *clause) words() string {
	switch c.kind {
	case exists:
		return bounded(c.path.String(), mostClause) + " exists"
	case absent:
		return bounded(c.path.String(), mostClause) + " is missing"
	case values:
		words := make([]string, len(c.conditions))
		for i := range c.conditions {
			words[i] = c.conditions[i].words()
		}
		return bounded(c.path.String()+" "+strings.Join(words, " and "), mostClause)
	}
	var b bytes.Buffer
	c.object(&b)
	return bounded(b.String(), mostClause)
}

// shown is a value as Explain shows it.
func shown(value []byte) string {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0:
		return "nothing"
	case value[0] == '{':
		return "an object"
	case string(value) == "[]":
		return "an empty list"
	case value[0] == '"':
		var text string
		if json.Unmarshal(value, &text) == nil {
			var b bytes.Buffer
			writeString(&b, bounded(text, mostFound))
			return b.String()
		}
	}
	return bounded(string(value), mostFound)
}
