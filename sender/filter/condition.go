package filter

import (
	"bytes"
	"slices"
	"strings"
)

// condition is an operator with its value.
type condition struct {
	op       operator
	literals []literal

	// The values of "in", so that a long list costs no more than a short one:
	strings map[string]bool
	numbers []number // in their order
	others  []shape
}

// operator is what a condition asks; its String is how it is written.
type operator byte

const (
	eq operator = iota
	in
	prefix
	lt
	lte
	gt
	gte
)

var operatorNames = [...]string{eq: "eq", in: "in", prefix: "prefix", lt: "lt", lte: "lte", gt: "gt", gte: "gte"}

func (o operator) String() string { return operatorNames[o] }

// shape is the type of a value; true and false are types of their own.
type shape byte

const (
	isString shape = iota
	isNumber
	isTrue
	isFalse
	isNull
)

// literal is a value in an expression.
type literal struct {
	shape  shape
	text   string // of a string
	number number
	json   string
}

// scalar is a value in a body.
type scalar struct {
	shape  shape
	text   []byte // of a string, its escapes resolved
	number number
}

// index prepares the list of "in".
func (c *condition) index() {
	c.strings = map[string]bool{}
	for i := range c.literals {
		switch l := &c.literals[i]; l.shape {
		case isString:
			c.strings[l.text] = true
		case isNumber:
			c.numbers = append(c.numbers, l.number)
		default:
			c.others = append(c.others, l.shape)
		}
	}
	slices.SortFunc(c.numbers, func(x, y number) int { return x.compare(&y) })
}

func (c *condition) holds(v *scalar) bool {
	if c.op == in {
		return c.has(v)
	}
	l := &c.literals[0]
	if l.shape != v.shape {
		return false
	}
	n := 0
	switch {
	case v.shape == isString && c.op == eq:
		return string(v.text) == l.text
	case v.shape == isString && c.op == prefix:
		return len(v.text) >= len(l.text) && string(v.text[:len(l.text)]) == l.text
	case v.shape == isString:
		n = compareText(v.text, l.text)
	case v.shape == isNumber:
		n = v.number.compare(&l.number)
	}
	switch c.op {
	case lt:
		return n < 0
	case lte:
		return n <= 0
	case gt:
		return n > 0
	case gte:
		return n >= 0
	}
	return n == 0
}

func (c *condition) has(v *scalar) bool {
	switch v.shape {
	case isString:
		return c.strings[string(v.text)]
	case isNumber:
		// A function of package slices would have v on the heap, for each value of a body.
		from, to := 0, len(c.numbers)
		for from < to {
			middle := (from + to) / 2
			switch n := c.numbers[middle].compare(&v.number); {
			case n == 0:
				return true
			case n < 0:
				from = middle + 1
			default:
				to = middle
			}
		}
		return false
	}
	return slices.Contains(c.others, v.shape)
}

// compareText compares without a copy.
func compareText(a []byte, b string) int {
	switch {
	case string(a) == b:
		return 0
	case string(a) < b:
		return -1
	}
	return 1
}

// value appends what stands behind the operator.
func (c *condition) value(b *bytes.Buffer) {
	if c.op != in {
		b.WriteString(c.literals[0].json)
		return
	}
	b.WriteByte('[')
	for i := range c.literals {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(c.literals[i].json)
	}
	b.WriteByte(']')
}

// words says a condition for people.
func (c *condition) words() string {
	var b bytes.Buffer
	c.value(&b)
	word := [...]string{eq: "=", in: "in", prefix: "begins with", lt: "<", lte: "<=", gt: ">", gte: ">="}[c.op]
	return word + " " + strings.TrimSpace(b.String())
}
