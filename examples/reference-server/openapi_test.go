package main_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The document has every call of the contract, resolves in itself, and describes
// each refusal as a problem.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	r := s.get("", "/openapi.json")
	doc := r.is(http.StatusOK)
	require.True(t, strings.HasPrefix(doc["openapi"].(string), "3.1"))
	paths := doc["paths"].(object)
	schemas := doc["components"].(object)["schemas"].(object)
	for _, call := range contract {
		method, path, _ := strings.Cut(call, " ")
		require.Contains(t, paths, path)
		require.Contains(t, paths[path], strings.ToLower(method), call)
	}
	used := map[string]bool{}
	var follow func(at string, v any)
	follow = func(at string, v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				require.Contains(t, schemas, name, at)
				used[name] = true
			}
			for name, one := range v {
				follow(at+"."+name, one)
			}
		case []any:
			for i, one := range v {
				follow(fmt.Sprintf("%s[%d]", at, i), one)
			}
		}
	}
	follow("", doc)
	for name := range schemas {
		require.True(t, used[name], "%s: nobody refers to it", name)
	}
	for _, about := range []string{"description", "contact", "license"} {
		require.NotEmpty(t, doc["info"].(object)[about], about)
	}
	ids, tags, said := map[any]bool{}, map[any]bool{}, map[any]bool{}
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(object)["name"]] = true
	}
	for path, methods := range paths {
		for method, op := range methods.(object) {
			at := method + " " + path
			o := op.(object)
			require.NotEmpty(t, o["operationId"], at)
			require.False(t, ids[o["operationId"]], at)
			ids[o["operationId"]] = true
			require.NotEmpty(t, o["summary"], at)
			require.NotEmpty(t, o["description"], at)
			require.False(t, said[o["description"]], "%s has the description of another", at)
			said[o["description"]] = true
			// A path, a query, a method and a body can be wrong everywhere, and each call asks the database.
			for _, status := range []string{"400", "405", "408", "413", "415", "422", "500", "503"} {
				require.Contains(t, o["responses"], status, at)
			}
			if strings.HasPrefix(path, "/subscribers/") {
				require.Contains(t, o["responses"], "404", at)
			}
			if method != "get" {
				require.Contains(t, fmt.Sprint(o["parameters"]), "Idempotency-Key", at)
				require.Contains(t, o["responses"], "409", at)
			}
			if body, ok := o["requestBody"].(object); ok {
				for _, media := range body["content"].(object) {
					require.Contains(t, media, "example", "%s, what is sent", at)
				}
			}
			require.Contains(t, tags, o["tags"].([]any)[0], at)
			require.Contains(t, o, "security", at)
			if path == "/healthz" || path == "/readyz" {
				require.Empty(t, o["security"], at)
			} else {
				require.NotEmpty(t, o["security"], at)
				require.Contains(t, o["responses"], "401", at)
				require.Contains(t, o["responses"], "429", at)
			}
			for status, answer := range o["responses"].(object) {
				if status >= "4" {
					require.Contains(t, answer.(object)["content"], "application/problem+json", at+" "+status)
				} else if status != "204" && status != "304" {
					require.NotEmpty(t, answer.(object)["content"], at+" "+status)
					for _, media := range answer.(object)["content"].(object) {
						require.Contains(t, media, "example", "%s, what comes back", at)
					}
				}
				if header, has := map[string]string{"401": "WWW-Authenticate", "405": "Allow", "429": "Retry-After", "503": "Retry-After"}[status]; has {
					require.Contains(t, answer.(object)["headers"], header, at+" "+status)
				}
			}
			for _, part := range strings.Split(path, "/") {
				name, ok := strings.CutPrefix(part, "{")
				if !ok {
					continue
				}
				require.Contains(t, fmt.Sprint(o["parameters"]), "name:"+strings.TrimSuffix(name, "}"), at)
			}
		}
	}
	for name, s := range schemas {
		for property, p := range s.(object)["properties"].(object) {
			described := p.(object)
			require.NotEmpty(t, described["description"], "%s.%s", name, property)
			require.NotContains(t, described, "patternDescription", "a word of no standard")
		}
	}
	for _, of := range [][2]string{{"NewJob", "input"}, {"Job", "result"}} {
		require.NotEmpty(t, schemas[of[0]].(object)["properties"].(object)[of[1]].(object)["anyOf"], "%s.%s has types", of[0], of[1])
	}
	unchanged := paths["/subscribers/{id}"].(object)["get"].(object)["responses"].(object)["304"]
	require.NotNil(t, unchanged, "it takes If-None-Match")
	require.Contains(t, unchanged.(object)["headers"], "ETag")
	progress := schemas["Job"].(object)["properties"].(object)["progress"]
	require.Contains(t, progress.(object)["anyOf"], object{"type": "null"}, "a job that has not begun has none")
	require.Equal(t, false, schemas["NewSubscriber"].(object)["additionalProperties"], "unknown fields are refused")
	for _, name := range []string{"NewSubscription", "SubscriptionChange"} {
		types := schemas[name].(object)["properties"].(object)["event_types"].(object)
		require.InDelta(t, 1, types["minItems"], 0, "an empty list is refused by %s", name)
		require.NotContains(t, fmt.Sprint(schemas[name].(object)["required"]), "event_types")
	}
}

// A server without flags takes what the document gives as examples. The first one makes the
// subscriber whom others name.
func TestExamplesAreTaken(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	paths := s.get("", "/openapi.json").is(http.StatusOK)["paths"].(object)
	for _, path := range []string{"/subscribers", "/subscriptions", "/subscriptions/preview", "/events", "/jobs", "/redactions"} {
		for _, media := range paths[path].(object)["post"].(object)["requestBody"].(object)["content"].(object) {
			r := s.post(operatorToken, path, media.(object)["example"])
			require.Less(t, r.status, 300, "%s: %s", path, r.text)
		}
	}
}

// Every call refuses a query parameter that it does not take: a caller who has mistyped a
// filter would be shown everything.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	calls := []string{"GET /openapi.json"}
	for path, methods := range s.get("", "/openapi.json").is(http.StatusOK)["paths"].(object) {
		for method := range methods.(object) {
			calls = append(calls, strings.ToUpper(method)+" "+path)
		}
	}
	require.GreaterOrEqual(t, len(calls), len(contract))
	for _, call := range calls {
		method, path, _ := strings.Cut(call, " ")
		var body any
		if method == http.MethodPost || method == http.MethodPatch {
			body = object{}
		}
		t.Log(call)
		s.call(operatorToken, method, strings.NewReplacer("{", "", "}", "").Replace(path)+"?never=1", body).refused(http.StatusUnprocessableEntity, "query.never")
	}
}

// contract is every call that clients may rely on.
var contract = []string{
	"POST /subscribers", "GET /subscribers/{id}", "PATCH /subscribers/{id}", "DELETE /subscribers/{id}",
	"GET /subscribers/sub_operator/secret", "POST /subscribers/{id}/secret/rotate", "POST /subscribers/{id}/secret/activate", "POST /subscribers/{id}/secret/retire", "POST /subscribers/{id}/token/rotate",
	"POST /subscriptions", "GET /subscriptions", "GET /subscriptions/{id}", "PATCH /subscriptions/{id}", "DELETE /subscriptions/{id}", "POST /subscriptions/{id}/test",
	"GET /events", "GET /events/{id}", "POST /events",
	"GET /deliveries", "GET /deliveries/{id}", "POST /deliveries/{id}/redeliver",
	"GET /notices", "POST /notices/{id}/acknowledge",
	"POST /jobs", "GET /jobs", "GET /jobs/{id}", "POST /jobs/{id}/cancel",
	"GET /healthz", "GET /readyz", "GET /metrics", "GET /subscribers", "POST /subscribers/{id}/redact", "POST /redactions",
}
