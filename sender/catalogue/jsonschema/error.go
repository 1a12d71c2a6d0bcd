package jsonschema

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Error says what is wrong with data. Its text has nothing of the data but the names of
// properties.
type Error struct {
	Type, Version string
	Problems      []Problem
}

// Problem is something that is wrong. Path is a JSON Pointer (RFC 6901) into the data: "" is
// all of it, /lines/0/total a part.
type Problem struct{ Path, Reason string }

// Error names the type, the version, and each problem with its path.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "data of %s", e.Type)
	if e.Version != "" {
		fmt.Fprintf(&b, ", version %s", e.Version)
	}
	for i, p := range e.Problems {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		if p.Path != "" {
			fmt.Fprintf(&b, "at %s: ", p.Path)
		}
		b.WriteString(p.Reason)
	}
	return b.String()
}

var english = message.NewPrinter(language.English)

// escaper escapes a name for a JSON Pointer.
var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// problems appends the innermost causes.
func problems(all []Problem, e *jsonschema.ValidationError) []Problem {
	for _, cause := range e.Causes {
		all = problems(all, cause)
	}
	if len(e.Causes) > 0 {
		return all
	}
	var path strings.Builder
	for _, step := range e.InstanceLocation {
		path.WriteByte('/')
		path.WriteString(escaper.Replace(step))
	}
	return append(all, Problem{path.String(), reason(e.ErrorKind)})
}

// reason words what is wrong. The library's own words quote values for some keywords; these
// have words of their own.
func reason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("it must match the pattern %q", k.Want)
	case *kind.Format:
		return "it must have the format " + k.Want
	case *kind.Minimum:
		return "it must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "it must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "it must be more than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "it must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "it must be a multiple of " + k.Want.RatString()
	case *kind.ContentEncoding:
		return "it must be encoded as " + k.Want
	case *kind.ContentMediaType:
		return "it must be of the media type " + k.Want
	}
	return k.LocalizedString(english)
}
