// Package ident has the forms of identifiers, so that the sending and the receiving side
// refuse exactly the same ones, and the form of texts that any database can store. It never
// truncates or normalises an identifier: one that does not have the form is an error.
package ident

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits. Those of texts are in bytes.
const (
	MaxEventID    = 128
	maxType       = 128
	maxObjectType = 64
	MaxObjectID   = 255
	MaxScope      = 128
	maxProxyName  = 64
	// MaxVersion is 2^53-1: the largest integer that every JSON parser keeps exact.
	MaxVersion = 1<<53 - 1
	// MaxForgotten bounds the last versions of objects that may be forgotten: new
	// objects' versions begin above those that were forgotten.
	MaxForgotten = MaxVersion / 2
)

// EventID reports what is wrong with an event's id, or nil. An id has 1 to 128 letters,
// digits, hyphens and underscores. A full stop is refused because the signed text of
// Standard Webhooks is "id.timestamp.body": with a full stop in the id it could be
// split in two ways.
func EventID(s string) error {
	return token("event id", s, MaxEventID, false)
}

// PrefixedID reports what is wrong with an id that a caller gives, or nil: it begins with the
// prefix, and has the form of an event's id. The error's text goes on from "it".
func PrefixedID(prefix, s string) error {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || rest == "" {
		return fmt.Errorf("must be %q, and letters, digits, hyphens or underscores after that", prefix)
	}
	if err := EventID(s); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "event id "))
	}
	return nil
}

// Type reports what is wrong with an event's type, or nil: words of letters,
// digits, hyphens and underscores, joined by full stops.
func Type(s string) error {
	return token("event type", s, maxType, true)
}

// TypePattern reports what is wrong with a pattern for events' types, or nil. A pattern is
// an exact type, "prefix.*" or "*".
func TypePattern(s string) error {
	if s == "*" {
		return nil
	}
	return Type(strings.TrimSuffix(s, ".*"))
}

// ObjectType reports what is wrong with an object's type, or nil. It has the
// form of an event's type, up to 64 bytes.
func ObjectType(s string) error {
	return token("object type", s, maxObjectType, true)
}

// ObjectID reports what is wrong with an object's id, or nil: 1 to 255 bytes of valid
// UTF-8 without control characters. There are no other rules, because producers name
// their objects as they like.
func ObjectID(s string) error {
	return text("object id", s, MaxObjectID)
}

// Scope reports what is wrong with a deduplication or idempotency scope, or nil:
// 1 to 128 bytes of valid UTF-8 without control characters.
func Scope(s string) error {
	return text("scope", s, MaxScope)
}

// Version reports what is wrong with an object's version, or nil: it runs from 1
// to 2^53-1.
func Version(v int64) error {
	if v < 1 || v > MaxVersion {
		return fmt.Errorf("version is %d: it must be from 1 to %d", v, int64(MaxVersion))
	}
	return nil
}

// ProxyName reports what is wrong with the name of a proxy, or nil. It allows what can
// stand in a setting without quotes: 1 to 64 letters, digits, hyphens and underscores.
func ProxyName(s string) error {
	if token("", s, maxProxyName, false) != nil {
		return fmt.Errorf("the name %q: it must have 1 to %d letters, digits, hyphens and underscores", s, maxProxyName)
	}
	return nil
}

func token(what, s string, limit int, dots bool) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", what, len(s), limit)
	}
	wordStart := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			wordStart = false
		case c == '.' && dots && !wordStart && i+1 < len(s):
			wordStart = true
		default:
			r, _ := utf8.DecodeRuneInString(s[i:])
			return fmt.Errorf("%s has the character %q at offset %d: allowed are ASCII letters, digits, hyphens and underscores%s",
				what, r, i, dotsAllowed(dots))
		}
	}
	return nil
}

func dotsAllowed(dots bool) string {
	if dots {
		return ", in words joined by single full stops"
	}
	return ""
}

func text(what, s string, limit int) error {
	if s == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", what)
	}
	for i, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%s has the control character %U at offset %d", what, r, i)
		}
	}
	return nil
}
