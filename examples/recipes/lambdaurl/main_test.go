package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/recipes/recipetest"
	"github.com/surehook/surehook/receiver/receivertest"
)

// The payload goes through the runtime's own decoding and encoding, once as text and
// once as base64.
func TestReceives(t *testing.T) {
	for name, encoded := range map[string]bool{"text": false, "base64": true} {
		t.Run(name, func(t *testing.T) {
			bed := recipetest.New(t)
			function := lambda.NewHandler(handler(bed.App))
			recipetest.Check(t, bed, func(r *receivertest.Request) recipetest.Answer {
				return invoke(t, function, payload(r, encoded))
			})
		})
	}
}

func TestRefusesBrokenBase64(t *testing.T) {
	bed := recipetest.New(t)
	answer := invoke(t, lambda.NewHandler(handler(bed.App)), events.LambdaFunctionURLRequest{Body: "{}", IsBase64Encoded: true})
	require.Equal(t, http.StatusBadRequest, answer.Status)
}

// payload is what AWS makes of a request: names in lower case, repeated headers joined
// with commas.
func payload(r *receivertest.Request, encoded bool) events.LambdaFunctionURLRequest {
	m := r.Message()
	req := events.LambdaFunctionURLRequest{Version: "2.0", RawPath: m.URL, Headers: map[string]string{}, Body: string(m.Body), IsBase64Encoded: encoded}
	req.RequestContext.HTTP.Method = m.Method
	for name, values := range m.Header {
		req.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if encoded {
		req.Body = base64.StdEncoding.EncodeToString(m.Body)
	}
	return req
}

func invoke(t *testing.T, function lambda.Handler, req events.LambdaFunctionURLRequest) recipetest.Answer {
	t.Helper()
	in, err := json.Marshal(req)
	require.NoError(t, err)
	out, err := function.Invoke(t.Context(), in)
	require.NoError(t, err)
	var res events.LambdaFunctionURLResponse
	require.NoError(t, json.Unmarshal(out, &res))
	if res.StatusCode == http.StatusOK {
		require.Equal(t, "application/json", res.Headers["Content-Type"])
	}
	return recipetest.Answer{Status: res.StatusCode, Body: res.Body}
}
