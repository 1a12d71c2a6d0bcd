package httpsig

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// component is a part of a request that a signature covers (RFC 9421 section 2).
type component struct {
	id    string // as it is serialised: "@query-param";name="x"
	kind  kind
	field string // a header's name, in its canonical spelling
	param string // the value of ;key or ;name
}

type kind uint8

const (
	plainField kind = iota
	bytesField      // ;bs
	keyField        // ;key
	method
	targetURI
	authority
	scheme
	requestTarget
	path
	query
	queryParam
)

var derived = map[string]kind{
	"@method": method, "@target-uri": targetURI, "@authority": authority, "@scheme": scheme,
	"@request-target": requestTarget, "@path": path, "@query": query, "@query-param": queryParam,
}

// ofTarget reports whether the component comes from the URL of the request.
func (c *component) ofTarget() bool { return c.kind >= targetURI }

const (
	contentDigest = "Content-Digest"
	digestID      = `"content-digest"`
	maxName       = 128
)

// refused are parameters that RFC 9421 has and this package has not, each with the reason.
var refused = map[string]string{
	"sf":  "the parameter sf asks for the type of each header, which nothing tells here: leave it out, so that the header is signed as it is",
	"req": "the parameter req is for answers, and this is a request",
	"tr":  "the parameter tr is for trailers, which come behind the body: sign headers",
}

// readComponent reads one component with its parameters. Here none has more than one.
func readComponent(s *scanner) (component, error) {
	start := s.at
	name, ok := s.str()
	if !ok {
		return component{}, errors.New("a component is no string")
	}
	c := component{kind: plainField}
	var params [1]struct{ name, value string }
	n := 0
	for ; s.take(';'); n++ {
		key, ok := s.key()
		if !ok {
			return component{}, errors.New("a parameter of a component has no name")
		}
		if why := refused[key]; why != "" {
			return component{}, errors.New(why)
		}
		value, valued := "", s.take('=')
		if valued {
			if value, ok = s.str(); !ok {
				return component{}, errors.New("a parameter of a component is no string")
			}
		}
		if known := key == "bs" && !valued || (key == "key" || key == "name") && valued; !known || n == 1 {
			return component{}, errors.New("a component has a parameter that is not known here: there may be one of bs, key and name")
		}
		params[0].name, params[0].value = key, value
	}
	if err := c.set(name, params[0].name, plain(params[0].value)); err != nil {
		return component{}, err
	}
	c.id = s.text[start:s.at]
	return c, nil
}

func (c *component) set(name, param, value string) error {
	if strings.HasPrefix(name, "@") {
		kind, known := derived[name]
		switch {
		case name == "@status":
			return errors.New("@status is for answers, and this is a request")
		case name == "@query-params":
			return errors.New("@query-params is of a draft: use @query or @query-param")
		case !known:
			return errors.New("a component begins with @ and is not one of those of requests in RFC 9421")
		case kind == queryParam && param != "name":
			return errors.New("@query-param needs the parameter name, and no other")
		case kind != queryParam && param != "":
			return fmt.Errorf("%s takes no parameter", name)
		}
		c.kind, c.param = kind, value
		return nil
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r > '~' || !tokenByte(byte(r)) || r >= 'A' && r <= 'Z' }) {
		return errors.New("a component is no name of a header in lower case")
	}
	switch param {
	case "bs":
		c.kind = bytesField
	case "key":
		c.kind = keyField
	case "name":
		return errors.New("the parameter name belongs to @query-param")
	}
	if name == "signature" || name == "signature-input" {
		return errors.New("the headers Signature and Signature-Input cannot be covered here: a signature over others proves nothing about the request")
	}
	c.field, c.param = http.CanonicalHeaderKey(name), value
	return nil
}

// layout is a list of components that has what the scheme asks for. It does not change.
type layout struct {
	list       string // as it is serialised
	components []component
}

// readLayout reads an inner list that the scanner has found to be one.
func readLayout(list string, required []component) (*layout, error) {
	l := &layout{list: strings.Clone(list)}
	s := scanner{text: l.list}
	s.take('(')
	for !s.take(')') {
		s.take(' ')
		c, err := readComponent(&s)
		if err != nil {
			return nil, err
		}
		if has(l.components, c.id) {
			return nil, errors.New("a component is covered twice")
		}
		l.components = append(l.components, c)
	}
	for _, c := range required {
		if !has(l.components, c.id) {
			return nil, fmt.Errorf("the signature does not cover %s, which it must", c.id)
		}
	}
	return l, nil
}

func has(components []component, id string) bool {
	for i := range components {
		if components[i].id == id {
			return true
		}
	}
	return false
}

// parseComponent takes a component as a program writes it: the quotes may be left out.
func parseComponent(text string) (component, error) {
	if !strings.HasPrefix(text, `"`) {
		name, params, has := strings.Cut(text, ";")
		text = `"` + name + `"`
		if has {
			text += ";" + params
		}
	}
	s := scanner{text: text}
	c, err := readComponent(&s)
	if err == nil && !s.done() {
		err = errors.New("there is something behind it")
	}
	return c, err
}
