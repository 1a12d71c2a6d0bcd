package postgres

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// To begin a statement costs the server, and us, more than to change a few rows. So
// statements that only write, and follow one another, are sent as one. They run on one
// snapshot, and none sees the changes of another: no two of a step write the same row.

// joining says how a queued statement may become a part of another one.
type joining uint8

const (
	joinNot  joining = iota
	joinAny          // an INSERT, UPDATE or DELETE that returns nothing
	joinLast         // a statement that begins with WITH, so that others can stand in it
)

// joins queues a statement that may be sent as one with others that write.
func (w *work) joins(text string, args ...any) error {
	if w.pipeline == nil {
		return w.execs(text, args...)
	}
	w.pipeline.queue(query{text: w.text(text), args: args, join: joinAny})
	return nil
}

// joined makes one statement of each run of statements that only write, and of one behind
// them that begins with WITH.
func joined(qs []query) []query {
	out := make([]query, 0, len(qs))
	for len(qs) > 0 {
		n := 0
		for n < len(qs) && qs[n].join == joinAny {
			n++
		}
		if n < len(qs) && qs[n].join == joinLast {
			n++
		}
		n = max(n, 1)
		out = append(out, oneOf(qs[:n]))
		qs = qs[n:]
	}
	return out
}

func oneOf(run []query) query {
	last := run[len(run)-1]
	if len(run) == 1 {
		return last
	}
	var text strings.Builder
	var args []any
	for i, q := range run {
		part := renumbered(q.text, len(args))
		args = append(args, q.args...)
		switch {
		case i < len(run)-1:
			text.WriteString([...]string{"WITH w", ", w"}[min(i, 1)] + strconv.Itoa(i) + " AS (" + part + ")")
		case q.join == joinLast:
			text.WriteString(", " + strings.TrimPrefix(part, "WITH "))
		default:
			text.WriteString(" " + part)
		}
	}
	return query{text: text.String(), args: args, scan: last.scan}
}

var (
	parameters = regexp.MustCompile(`\$\d+`)
	moved      sync.Map // by renumbering
)

// renumbering is a statement, with the number by which its parameters move.
type renumbering struct {
	text string
	by   int
}

// renumbered moves the parameters of a statement behind those of others.
func renumbered(text string, by int) string {
	key := renumbering{text, by}
	if t, ok := moved.Load(key); ok {
		return t.(string)
	}
	t := parameters.ReplaceAllStringFunc(text, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return "$" + strconv.Itoa(n+by)
	})
	moved.Store(key, t)
	return t
}
