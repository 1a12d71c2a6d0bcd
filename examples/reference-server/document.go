package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// node is an object of the OpenAPI document.
type node = map[string]any

// document is the OpenAPI document, once everything is registered: what the API is checked
// by, and beside it what is said of each call to people and to generators of clients.
func (s *server) document() ([]byte, error) {
	text, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return nil, err
	}
	var doc node
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // versions have more digits than a float keeps
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	withoutOwnWords(doc)
	typeJobs(doc["components"].(node)["schemas"].(node))
	all := described()
	for _, kind := range []string{"paths", "webhooks"} {
		for path, item := range doc[kind].(node) {
			for _, op := range item.(node) {
				if err := describeOperation(kind, path, op.(node), all); err != nil {
					return nil, err
				}
			}
		}
	}
	return json.Marshal(doc)
}

// withoutOwnWords removes what huma alone understands.
func withoutOwnWords(v any) {
	switch v := v.(type) {
	case node:
		if _, is := v["patternDescription"].(string); is {
			delete(v, "patternDescription")
		}
		for _, one := range v {
			withoutOwnWords(one)
		}
	case []any:
		for _, one := range v {
			withoutOwnWords(one)
		}
	}
}

// typeJobs says what the input and the result of a job are. Inputs are checked by their
// kinds, which say more than that none of several schemas fits.
func typeJobs(schemas node) {
	ref := func(name string) any { return node{"$ref": "#/components/schemas/" + name} }
	property := func(schema, name string) node {
		return schemas[schema].(node)["properties"].(node)[name].(node)
	}
	property("NewJob", "input")["anyOf"] = []any{ref("ImportSubscribers"), ref("ReplayDeliveries"), ref("ExportEvents")}
	property("Job", "result")["anyOf"] = []any{
		ref("Imported"), ref("Replayed"), ref("ExportLink"), node{"type": "array", "items": ref("Event")}, node{"type": "null"},
	}
}

func describeOperation(kind, path string, op node, all map[string]words) error {
	w, ok := all[op["operationId"].(string)]
	if ok {
		op["description"] = strings.TrimSpace(w.about + " " + str(op["description"]))
	}
	if op["security"] == nil {
		op["security"] = []any{}
	}
	responses := op["responses"].(node)
	if kind == "paths" {
		responses["405"] = node{"description": "The path has no such method; Allow lists those that it has.", "content": problemContent()}
	}
	for status, r := range responses {
		describeResponse(path, status, r.(node))
	}
	for _, p := range list(op["parameters"]) {
		if p := p.(node); p["in"] == "path" {
			p["example"] = idOf(path)
		}
	}
	return w.examples(op, responses)
}

func describeResponse(path, status string, r node) {
	switch status {
	case "401":
		r["headers"] = node{"WWW-Authenticate": node{"description": "By which scheme a token is sent: Bearer.", "schema": node{"type": "string"}}}
	case "405":
		r["headers"] = node{"Allow": node{"description": "The methods that the path has, with commas between.", "schema": node{"type": "string"}}}
	case "429", "503":
		r["headers"] = node{"Retry-After": node{"description": "After how many seconds it is worth another try.", "schema": node{"type": "integer"}}}
	case "204":
		r["description"] = "It is done."
	case "304":
		r["description"] = "It is what If-None-Match names."
		r["headers"] = node{"ETag": node{"schema": node{"type": "string"}}}
	}
	if status == "429" && (path == "/subscriptions" || path == "/subscriptions/preview" || path == "/jobs") {
		r["description"] = "Too many requests a second, or as many of these as a subscriber may have."
	}
}

func problemContent() node {
	return node{"application/problem+json": node{"schema": node{"$ref": "#/components/schemas/Problem"}}}
}

// idOf is an id such as a path takes.
func idOf(path string) string {
	for prefix, id := range map[string]string{"/subscribers/": anySubscriber, "/subscriptions/": anySubscription, "/events/": anyEvent, "/deliveries/": anyDelivery, "/jobs/": anyJob, "/notices/": anyNotice} {
		if strings.HasPrefix(path, prefix) {
			return id
		}
	}
	return ""
}

// examples puts the examples where they belong.
func (w words) examples(op, responses node) error {
	if body, ok := op["requestBody"].(node); ok && w.request != nil {
		if err := exemplify(body, w.request); err != nil {
			return err
		}
	}
	if w.response == nil {
		return nil
	}
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
		if r, ok := responses[strconv.Itoa(status)].(node); ok {
			return exemplify(r, w.response)
		}
	}
	return nil
}

func exemplify(of node, example any) error {
	text, err := json.Marshal(example)
	if err != nil {
		return err
	}
	content := of["content"].(node)
	for _, media := range content {
		media.(node)["example"] = json.RawMessage(text)
	}
	return nil
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func list(v any) []any {
	all, _ := v.([]any)
	return slices.Clone(all)
}
