// Command lambdaurl receives signed events as an AWS Lambda function behind a function
// URL, or behind an HTTP API of API Gateway, which sends the same payload (format 2.0).
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/surehook/surehook/examples/recipes/account"
	"github.com/surehook/surehook/signing"
)

// The application is opened once for all requests of the instance, which ends with the
// process.
func main() {
	app, err := account.FromEnvironment(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.Start(handler(app))
}

func handler(app *account.App) func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	return func(ctx context.Context, req events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		m, err := message(req)
		if err != nil {
			return events.LambdaFunctionURLResponse{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // an error would be answered with 502
		}
		answer := app.Receive(ctx, m)
		res := events.LambdaFunctionURLResponse{StatusCode: answer.Status, Headers: map[string]string{}, Body: string(answer.Body)}
		for name := range answer.Header {
			res.Headers[name] = answer.Header.Get(name)
		}
		return res, nil
	}
}

// message undoes the base64 that AWS puts around bodies it does not take for text, to
// which JSON belongs or not by its Content-Type: the signature covers the bytes inside.
// A header that was sent twice comes as one value with a comma, which no scheme takes.
func message(req events.LambdaFunctionURLRequest) (signing.Message, error) {
	body := []byte(req.Body)
	if req.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(req.Body); err != nil {
			return signing.Message{}, fmt.Errorf("the body says that it is base64: %w", err)
		}
	}
	h := make(http.Header, len(req.Headers))
	for name, value := range req.Headers {
		h.Add(name, value)
	}
	url := req.RawPath
	if req.RawQueryString != "" {
		url += "?" + req.RawQueryString
	}
	return signing.Message{Method: req.RequestContext.HTTP.Method, URL: url, Header: h, Body: body}, nil
}
