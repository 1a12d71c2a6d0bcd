package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
)

// problems are all that is wrong with a type by itself.
func (t *Type) problems() (errs []error) {
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	add(ident.Type(t.Name))
	add(ident.ObjectType(t.Object))
	if !slices.Contains([]Kind{State, Fact, Thin}, t.Kind) {
		add(fmt.Errorf("Kind is %q: it must be State, Fact or Thin", t.Kind))
	}
	if !utf8.ValidString(t.Group) || !utf8.ValidString(t.Description) || !utf8.ValidString(t.Deprecated) {
		add(errors.New("its texts must be valid UTF-8"))
	}
	switch {
	case len(t.Versions) == 0:
		add(errors.New("it has no Versions: give one, with an example"))
	case t.Kind == Thin && len(t.Versions) > 1:
		add(fmt.Errorf("it is Thin and has %d Versions: without data there is one", len(t.Versions)))
	}
	for i := range t.Versions {
		for _, err := range t.versionProblems(i) {
			add(fmt.Errorf("version %d, %q: %w", i, t.Versions[i].Since, err))
		}
	}
	if len(errs) == 0 {
		errs = t.conversionProblems()
	}
	return errs
}

func (t *Type) versionProblems(i int) (errs []error) {
	v := &t.Versions[i]
	bad := func(wrong bool, what string) {
		if wrong {
			errs = append(errs, errors.New(what))
		}
	}
	bad(v.Since == "" && i > 0, "it has no Since: give the date since which it is there, as 2026-11-25")
	bad(v.Since != "" && !isDate(v.Since), "Since must be a date as 2026-11-25")
	bad(i > 0 && v.Since != "" && v.Since <= t.Versions[i-1].Since, "Since must be after that of the version before: the oldest version comes first")
	bad(i == 0 && v.Down != nil, "it is the first one and has a Down: there is no version before it")
	bad(i > 0 && v.Down == nil, "it has no Down: older customers need a function that makes the data of the version before")
	bad(!utf8.ValidString(v.Changes), "Changes must be valid UTF-8")
	bad(v.Schema != nil && !isSchema(v.Schema), "Schema must be a JSON Schema: an object, true or false, in UTF-8")
	bad(v.Schema != nil && t.Kind == Thin, "a Thin type has no data, and so no Schema")
	bad(len(v.Examples) == 0, "it has no Examples: give one")
	names := map[string]bool{}
	for n, e := range v.Examples {
		for _, err := range t.exampleProblems(e) {
			errs = append(errs, fmt.Errorf("example %d, %q: %w", n, e.Name, err))
		}
		bad(names[e.Name], fmt.Sprintf("example %d, %q: another one has the same Name", n, e.Name))
		names[e.Name] = true
	}
	return errs
}

func (t *Type) exampleProblems(e Example) (errs []error) {
	if err := ident.ObjectID(e.ObjectID); err != nil {
		errs = append(errs, err)
	}
	if !utf8.ValidString(e.Name) {
		errs = append(errs, errors.New("its Name must be valid UTF-8"))
	}
	switch {
	case t.Kind == Thin && e.Data != nil:
		errs = append(errs, errors.New("a Thin type has no data: leave out Data, or choose another Kind"))
	case t.Kind != Thin && e.Data == nil:
		errs = append(errs, errors.New("it has no Data: give some, or make the type Thin"))
	case e.Data != nil && (!json.Valid(e.Data) || !utf8.Valid(e.Data)):
		errs = append(errs, errors.New("its Data is no JSON in UTF-8"))
	}
	return errs
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

func isSchema(schema json.RawMessage) bool {
	trimmed := bytes.TrimSpace(schema)
	return json.Valid(schema) && utf8.Valid(schema) && len(trimmed) > 0 && (trimmed[0] == '{' || string(trimmed) == "true" || string(trimmed) == "false")
}

// conversionProblems runs the examples of each version down to the oldest. The result for
// a version must be its example of the same name, if it has one.
func (t *Type) conversionProblems() (errs []error) {
	for from := range t.Versions {
		for _, e := range t.Versions[from].Examples {
			data := e.Data
			for to := from - 1; to >= 0; to-- {
				var err error
				if data, _, err = t.convert(data, to+1, to); err != nil {
					err = fmt.Errorf("converting by Down of version %q: %w", t.Versions[to+1].Since, err)
				} else {
					err = t.Versions[to].mustBe(e.Name, data)
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("version %q: example %q, made into version %q: %w", t.Versions[from].Since, e.Name, t.Versions[to].Since, err))
					break
				}
			}
		}
	}
	return errs
}

// mustBe compares data with the example of a name.
func (v *Version) mustBe(name string, data json.RawMessage) error {
	i := slices.IndexFunc(v.Examples, func(e Example) bool { return e.Name == name })
	if i < 0 || equal(v.Examples[i].Data, data) {
		return nil
	}
	return fmt.Errorf("it is not that version's example of the same name: the converter makes %s", data)
}

// equal compares JSON without regard to spaces and to the order of names. Numbers are
// compared as they are written.
func equal(a, b json.RawMessage) bool {
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decode(data json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
