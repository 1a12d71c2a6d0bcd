package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong at one place of an expression, and what would be right.
type Error struct {
	At     string // such as and[1]["data.amount"].gte; "": the whole
	Reason string
}

// Error returns both.
func (e *Error) Error() string {
	if e.At == "" {
		return e.Reason
	}
	return e.At + ": " + e.Reason
}

// Parse reads an expression, and reports all that is wrong with it: each as an *Error, joined
// by errors.Join.
func Parse(text []byte) (*Filter, error) {
	p := parser{}
	root := p.parse(text)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	f := &Filter{root: root}
	var b bytes.Buffer
	root.object(&b)
	f.text = b.String()
	if f.text != string(text) {
		// The written form can be a little longer or deeper than the given one: it must keep
		// the bounds, too.
		again := parser{}
		if again.parse(b.Bytes()); len(again.errs) > 0 {
			return nil, errors.Join(again.errs...)
		}
	}
	f.place(root)
	return f, nil
}

// place puts the clauses to the steps at which they are decided.
func (f *Filter) place(root *clause) {
	n := 0
	var walk func(c *clause)
	walk = func(c *clause) {
		for _, p := range c.parts {
			walk(p)
		}
		if c.path == nil {
			return
		}
		c.bit = 1 << n
		n++
		at := f.paths.to(c.path)
		if c.kind == values {
			at.tests = append(at.tests, c)
		} else {
			at.exists |= c.bit
		}
	}
	walk(root)
	f.paths.sum()
}

type parser struct {
	dec   *json.Decoder
	terms int
	errs  []error
}

// mostErrors bounds what one expression is told.
const mostErrors = 20

func (p *parser) wrong(at, format string, args ...any) {
	if len(p.errs) < mostErrors {
		p.errs = append(p.errs, &Error{At: at, Reason: fmt.Sprintf(format, args...)})
	}
}

func (p *parser) parse(text []byte) *clause {
	switch {
	case len(text) > MaxBytes:
		p.wrong("", "it has %d bytes: at most %d are allowed", len(text), MaxBytes)
		return nil
	case !utf8.Valid(text):
		p.wrong("", "it is not valid UTF-8")
		return nil
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		p.wrong("", "it is not JSON: %v", err)
		return nil
	}
	p.dec = json.NewDecoder(bytes.NewReader(text))
	p.dec.UseNumber()
	c := p.expression("", 0)
	if p.terms > MaxTerms {
		p.wrong("", "it has %d operators: at most %d are allowed", p.terms, MaxTerms)
	}
	return c
}

// token returns the next token. The text is JSON, so there is one.
func (p *parser) token() json.Token {
	t, _ := p.dec.Token()
	return t
}

// pass goes past the value that begins with a token.
func (p *parser) pass(t json.Token) {
	depth := 0
	for {
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return
		}
		t = p.token()
	}
}

// expression reads an object whose members all must hold. It returns nil if something is
// wrong.
func (p *parser) expression(at string, depth int) *clause {
	if t := p.token(); t != json.Delim('{') {
		p.pass(t)
		p.wrong(at, `it must be an object, such as {"data.status": "paid"}`)
		return nil
	}
	var parts []*clause
	seen := map[string]bool{}
	for p.dec.More() {
		name, _ := p.token().(string)
		where := member(at, name)
		if seen[name] {
			p.wrong(where, `it is there twice: to ask for both, write {"and": [{…}, {…}]}`)
		}
		seen[name] = true
		if c := p.member(where, name, depth); c != nil {
			parts = append(parts, c)
		}
	}
	p.token()
	if len(seen) == 0 {
		p.wrong(at, "it asks for nothing: name a path, or leave it out")
	}
	return together(all, parts)
}

// together joins clauses, and those within them that are joined in the same way.
func together(k kind, parts []*clause) *clause {
	if len(parts) == 1 {
		return parts[0]
	}
	c := &clause{kind: k}
	for _, p := range parts {
		if p.kind == k {
			c.parts = append(c.parts, p.parts...)
		} else {
			c.parts = append(c.parts, p)
		}
	}
	return c
}

func (p *parser) member(at, name string, depth int) *clause {
	switch name {
	case "and":
		return p.list(at, all, depth+1)
	case "or":
		return p.list(at, some, depth+1)
	case "not":
		if !p.deeper(at, depth+1) {
			return nil
		}
		c := p.expression(at, depth+1)
		if c == nil {
			return nil
		}
		return &clause{kind: none, parts: []*clause{c}}
	}
	of, err := parsePath(name)
	if err != nil {
		p.wrong(at, "%v", err)
	}
	return p.operators(at, of)
}

// deeper tells whether there may be an expression so deep. If not it goes past it.
func (p *parser) deeper(at string, depth int) bool {
	if depth <= MaxDepth {
		return true
	}
	p.wrong(at, `"and", "or" and "not" stand within each other more than %d times: write it flatter`, MaxDepth)
	p.pass(p.token())
	return false
}

func (p *parser) list(at string, k kind, depth int) *clause {
	if !p.deeper(at, depth) {
		return nil
	}
	if t := p.token(); t != json.Delim('[') {
		p.pass(t)
		p.wrong(at, `it must be a list of expressions, such as [{"data.status": "paid"}, {"data.status": "settled"}]`)
		return nil
	}
	var parts []*clause
	n := 0
	for ; p.dec.More(); n++ {
		if c := p.expression(fmt.Sprintf("%s[%d]", at, n), depth); c != nil {
			parts = append(parts, c)
		}
	}
	p.token()
	if n == 0 {
		p.wrong(at, "the list is empty: give one expression or more")
	}
	return together(k, parts)
}

// operators reads what stands behind a path.
func (p *parser) operators(at string, of path) *clause {
	t := p.token()
	if t != json.Delim('{') {
		p.terms++
		if t == json.Delim('[') {
			p.pass(t)
			p.wrong(at, `a list of values is written {"in": […]}`)
			return nil
		}
		l, ok := p.literal(at, t)
		if !ok {
			return nil
		}
		return &clause{kind: values, path: of, conditions: []condition{{op: eq, literals: []literal{l}}}}
	}
	c := &clause{kind: values, path: of}
	seen := map[string]bool{}
	for p.dec.More() {
		op, _ := p.token().(string)
		where := member(at, op)
		if seen[op] {
			p.wrong(where, "it is there twice")
		}
		seen[op] = true
		p.terms++
		p.operator(where, op, c)
	}
	p.token()
	switch {
	case len(seen) == 0:
		p.wrong(at, `there is no operator: write one of %s, or {"exists": true} if any value is right`, operators)
	case seen["exists"] && len(seen) > 1:
		p.wrong(at, `"exists" stands alone: other operators hold only of what is there`)
	}
	return c
}

const operators = `"eq", "in", "prefix", "lt", "lte", "gt", "gte", "exists"`

func (p *parser) operator(at, op string, c *clause) {
	switch op {
	case "exists":
		t := p.token()
		switch t {
		case true:
			c.kind = exists
		case false:
			c.kind = absent
		default:
			p.pass(t)
			p.wrong(at, "it must be true or false")
		}
		return
	case "in":
		p.in(at, c)
		return
	case "eq", "prefix", "lt", "lte", "gt", "gte":
	default:
		p.pass(p.token())
		p.wrong(at, "it is no operator: %s", instead(op, c.path))
		return
	}
	l, ok := p.literal(at, p.token())
	switch {
	case !ok:
		return
	case op == "prefix" && l.shape != isString:
		p.wrong(at, `it must be a string: what begins with it matches`)
	case op != "eq" && op != "prefix" && l.shape != isString && l.shape != isNumber:
		p.wrong(at, "it must be a number or a string: nothing else is less or greater")
	}
	c.conditions = append(c.conditions, condition{op: operator(slices.Index(operatorNames[:], op)), literals: []literal{l}})
}

func (p *parser) in(at string, c *clause) {
	if t := p.token(); t != json.Delim('[') {
		p.pass(t)
		p.wrong(at, `it must be a list of values, such as ["paid", "settled"]`)
		return
	}
	list := condition{op: in}
	n := 0
	for ; p.dec.More(); n++ {
		if l, ok := p.literal(fmt.Sprintf("%s[%d]", at, n), p.token()); ok {
			list.literals = append(list.literals, l)
		}
	}
	p.token()
	if n == 0 {
		p.wrong(at, "the list is empty, so nothing would match: give one value or more")
	}
	list.index()
	c.conditions = append(c.conditions, list)
}

// instead says how to write what a customer of other languages may have meant.
func instead(op string, of path) string {
	word := strings.ToLower(strings.TrimLeft(op, "$"))
	like := map[string]string{
		"=": "eq", "==": "eq", "equals": "eq", "eq": "eq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "lt": "lt", "le": "lte", "lte": "lte", "gt": "gt", "ge": "gte", "gte": "gte",
		"startswith": "prefix", "starts_with": "prefix", "prefix": "prefix", "anyof": "in", "any_of": "in", "oneof": "in", "in": "in", "exist": "exists", "exists": "exists",
	}
	if right, ok := like[word]; ok {
		return fmt.Sprintf("write %q", right)
	}
	switch word {
	case "ne", "neq", "!=", "<>", "not", "nin", "not_in", "anything-but", "notin":
		if of == nil { // it is wrong, too
			return `write {"not": {…: …}} around it`
		}
		return fmt.Sprintf(`write {"not": {%s: …}} around it`, quoted(of.String()))
	}
	return "the operators are " + operators
}

// literal reads a value that begins with a token.
func (p *parser) literal(at string, t json.Token) (l literal, ok bool) {
	switch v := t.(type) {
	case string:
		return literal{shape: isString, text: v, json: quoted(v)}, true
	case json.Number:
		text := v.String()
		l := literal{shape: isNumber, number: parseNumber([]byte(text)), json: text}
		if e := strings.IndexAny(text, "eE"); e >= 0 {
			if n := parseExponent([]byte(text[e+1:])); n > maxExponent || n < -maxExponent {
				p.wrong(at, "the exponent of the number is beyond ±%d", maxExponent)
			}
		}
		return l, true
	case bool:
		if v {
			return literal{shape: isTrue, json: "true"}, true
		}
		return literal{shape: isFalse, json: "false"}, true
	case nil:
		return literal{shape: isNull, json: "null"}, true
	}
	p.pass(t)
	p.wrong(at, "a value is a string, a number, true, false or null: name a path to look into an object or an array")
	return literal{}, false
}

// member names a member of what stands at a place.
func member(at, name string) string {
	plain := name != ""
	for _, c := range name {
		plain = plain && (c == '_' || c >= 'a' && c <= 'z')
	}
	switch {
	case !plain:
		return fmt.Sprintf("%s[%q]", at, bounded(name, 80))
	case at == "":
		return name
	}
	return at + "." + name
}

// bounded cuts a text that is too long.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
