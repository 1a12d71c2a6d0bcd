package signing

import (
	"errors"
	"fmt"
	"strings"
)

// part is a piece of what precedes the body in the text that is signed.
type part struct {
	kind    partKind
	literal string
}

type partKind uint8

const (
	partLiteral partKind = iota
	partTimestamp
	partID
	partHeaders
)

// partURL never lasts: the URL is a literal once the scheme is made.
const partURL partKind = 0xff

// parseSigned takes a template apart. {body} must be its end and is left out.
func parseSigned(template string) ([]part, error) {
	head, ends := strings.CutSuffix(template, "{body}")
	if !ends {
		return nil, errors.New(`it must end with {body}, as "{timestamp}.{body}" does`)
	}
	var parts []part
	for head != "" {
		literal, rest, found := strings.Cut(head, "{")
		if literal != "" {
			parts = append(parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		kind, known := map[string]partKind{"timestamp": partTimestamp, "id": partID, "headers": partHeaders, "url": partURL}[name]
		if !closed || !known {
			return nil, fmt.Errorf("{%s} is not known: it may have {timestamp}, {id}, {url} and {headers}, and {body} as its end", name)
		}
		if hasPart(parts, kind) {
			return nil, fmt.Errorf("it has {%s} twice", name)
		}
		parts = append(parts, part{kind: kind})
		head = after
	}
	return parts, nil
}

func hasPart(parts []part, kind partKind) bool {
	for _, p := range parts {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// idsIn returns which ids cannot shift into what stands beside them in the signed text. If
// the byte behind the id is one that no id of the narrow form has, an id may have every
// other. Otherwise nothing but the narrow form keeps the id apart from the rest, and where
// headers of any text come first, not to let them shift into the id either.
func idsIn(head []part) *idForm {
	for i, p := range head {
		switch {
		case p.kind != partID && p.kind != partHeaders:
			continue
		case i+1 == len(head) || head[i+1].kind != partLiteral || ownIDs.refused[head[i+1].literal[0]] == 0:
			return ownIDs
		case p.kind == partHeaders && head[i+1].literal[0] != '.': // which separates headers
			return ownIDs
		default:
			return foreignIDs(head[i+1].literal[0])
		}
	}
	return ownIDs
}

// appendHead appends what precedes the body.
func (s *Described) appendHead(dst []byte, r *stated) []byte {
	for i := range s.head {
		switch p := &s.head[i]; p.kind {
		case partLiteral:
			dst = append(dst, p.literal...)
		case partTimestamp:
			dst = append(dst, r.timestamp...)
		case partID:
			dst = append(dst, r.id...)
		case partHeaders:
			dst = append(dst, r.covered...)
			for name := range strings.SplitSeq(r.covered, " ") {
				dst = append(append(dst, '.'), findSpelled(r.header, name).text...)
			}
		}
	}
	return dst
}
