package main

import (
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// Page are the parameters of every list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many entries a page has at most."`
	Cursor string `query:"cursor" doc:"The next_cursor of the page before."`
}

// List is a page of a list. It can be short before the end: the end is a
// next_cursor that is null.
type List[T any] struct {
	Data       []T     `json:"data" nullable:"false" doc:"The entries."`
	NextCursor *string `json:"next_cursor" doc:"What the following page is asked for with; null after the last."`
}

// listOf is a page, and next the library's cursor of the one that follows.
func listOf[T, F any](list string, from []F, next string, view func(F) T) *answer[List[T]] {
	l := List[T]{Data: make([]T, 0, len(from))}
	if next != "" {
		next = outer(list, next)
		l.NextCursor = &next
	}
	for _, f := range from {
		l.Data = append(l.Data, view(f))
	}
	return &answer[List[T]]{l}
}

// cursor returns the library's cursor from the caller's. It refuses a cursor that no page
// of this list has returned: some of the library's are plain numbers, which many a wrong
// text would match.
func (p *Page) cursor(list string) (string, error) {
	if p.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || len(raw) < checkSize || outer(list, string(raw[checkSize:])) != p.Cursor {
		return "", invalid("query.cursor", notOfAList)
	}
	return string(raw[checkSize:]), nil
}

const (
	checkSize = 6

	notOfAList = "it must be the next_cursor of a page of the same list"
)

// outer is a cursor as callers see it: the library's, with a check of which list it
// is of. It holds no secret, and gives no right.
func outer(list, cursor string) string {
	return base64.RawURLEncoding.EncodeToString(append(check(list, cursor), cursor...))
}

func check(list, cursor string) []byte {
	sum := sha256.Sum256([]byte(list + "\x00" + cursor))
	return sum[:checkSize]
}

// orNull is null for a zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// asBound is a time before which something was, if there is one. The library's zero time, of
// the year 1, bounds nothing: one that was given is always after it.
func asBound(t *time.Time) time.Time {
	switch earliest := (time.Time{}).Add(time.Microsecond); {
	case t == nil:
		return time.Time{}
	case t.Before(earliest):
		return earliest
	default:
		return *t
	}
}

// timeOrNull is null for no time, and in UTC.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
