package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/surehook/surehook/sender/catalogue"
)

// Checker checks data against the schemas of a catalogue. It is safe for concurrent use.
type Checker struct {
	types map[string]*checkedType
}

type checkedType struct {
	thin     bool
	versions map[string]*jsonschema.Schema // by their dates; nil: there is no schema
}

// New returns a Checker of a catalogue. The error has all schemas that cannot be compiled,
// and all examples that do not fit theirs.
func New(c *catalogue.Catalogue) (*Checker, error) {
	if c == nil {
		return nil, errors.New("sender/catalogue/jsonschema: New needs a catalogue")
	}
	k := &Checker{types: map[string]*checkedType{}}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(nothing{})
	var errs []error
	for _, t := range c.Types() {
		checked := &checkedType{thin: t.Kind == catalogue.Thin, versions: map[string]*jsonschema.Schema{}}
		k.types[t.Name] = checked
		for _, v := range t.Versions {
			schema, err := compiled(compiler, t.Name, &v)
			if err != nil {
				errs = append(errs, fmt.Errorf("sender/catalogue/jsonschema: type %q, version %q: Schema: %w", t.Name, v.Since, err))
			}
			checked.versions[v.Since] = schema
		}
	}
	if len(errs) == 0 {
		errs = k.examples(c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return k, nil
}

func compiled(compiler *jsonschema.Compiler, name string, v *catalogue.Version) (*jsonschema.Schema, error) {
	if v.Schema == nil {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(v.Schema))
	if err != nil {
		return nil, err
	}
	at := "urn:surehook:" + name + ":" + v.Since
	if err := compiler.AddResource(at, doc); err != nil {
		return nil, err
	}
	return compiler.Compile(at)
}

// nothing loads no other documents.
type nothing struct{}

func (nothing) Load(string) (any, error) {
	return nil, errors.New("a schema may refer to itself and to the drafts alone: put what it needs under $defs")
}

// examples checks all examples of a catalogue, and what the converters make of them.
func (k *Checker) examples(c *catalogue.Catalogue) (errs []error) {
	for _, t := range c.Types() {
		for from, v := range t.Versions {
			for _, e := range v.Examples {
				for to := from; to >= 0; to-- {
					version, data, err := c.Convert(t.Name, v.Since, t.Versions[to].Since, e.Data)
					if err == nil {
						err = k.Check(t.Name, version, data)
					}
					if err != nil {
						errs = append(errs, fmt.Errorf("example %q of version %q: %w", e.Name, v.Since, err))
						break
					}
				}
			}
		}
	}
	return errs
}

// own are the types that the library publishes itself.
var own = map[string]bool{"job.completed": true}

// Check reports what is wrong with the data of an event of a type in a version: an *Error, or
// nil. A type that the catalogue does not have is wrong.
func (k *Checker) Check(eventType, version string, data json.RawMessage) error {
	refuse := func(path, reason string) error {
		return &Error{Type: eventType, Version: version, Problems: []Problem{{path, reason}}}
	}
	t, ok := k.types[eventType]
	if !ok {
		if own[eventType] {
			return nil
		}
		return refuse("", "the catalogue has no such type")
	}
	schema, ok := t.versions[version]
	switch {
	case !ok:
		return refuse("", "the catalogue has no such version of the type")
	case t.thin && data != nil:
		return refuse("", "the type is thin, and the event has data")
	case !t.thin && data == nil:
		return refuse("", "the event has no data, and the type is not thin")
	case schema == nil:
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return refuse("", "it is no JSON")
	}
	if path, why := dearNumber(value); why != "" {
		return refuse(path, why)
	}
	var wrong *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &wrong) {
		return &Error{Type: eventType, Version: version, Problems: problems(nil, wrong)}
	} else if err != nil {
		return refuse("", "it cannot be checked")
	}
	return nil
}

// maxExponent bounds the exponents of numbers, and maxNumber their characters. Numbers are
// compared exactly, as fractions, which takes long with a large exponent or with many digits;
// beyond an exponent of a million the library makes none, and panics.
const (
	maxExponent = 1000
	maxNumber   = 1000
)

// dearNumber returns the path to a number that is out of bounds, and why; "" if there is none.
func dearNumber(value any) (path, why string) {
	in := func(step string, value any) bool {
		if path, why = dearNumber(value); why != "" {
			path = "/" + escaper.Replace(step) + path
		}
		return why != ""
	}
	switch v := value.(type) {
	case json.Number:
		_, exponent, ok := strings.Cut(strings.ToLower(v.String()), "e")
		n, err := strconv.Atoi(exponent)
		switch {
		case len(v) > maxNumber:
			return "", fmt.Sprintf("the number has %d characters: at most %d are allowed", len(v), maxNumber)
		case ok && (err != nil || n > maxExponent || n < -maxExponent):
			return "", fmt.Sprintf("the exponent of the number is beyond ±%d", maxExponent)
		}
	case map[string]any:
		for name, one := range v {
			if in(name, one) {
				return path, why
			}
		}
	case []any:
		for i, one := range v {
			if in(strconv.Itoa(i), one) {
				return path, why
			}
		}
	}
	return "", ""
}
