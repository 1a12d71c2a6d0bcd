// Command apigateway receives signed events as an AWS Lambda function behind a REST API
// of API Gateway, or behind an HTTP API with the payload format 1.0.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
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

func handler(app *account.App) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, req events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		m, err := message(req)
		if err != nil {
			return events.APIGatewayProxyResponse{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // an error would be answered with 502
		}
		answer := app.Receive(ctx, m)
		return events.APIGatewayProxyResponse{StatusCode: answer.Status, MultiValueHeaders: answer.Header, Body: string(answer.Body)}, nil
	}
}

// message undoes the base64 that API Gateway puts around the bodies of its binary media
// types: the signature covers the bytes inside. It reads the headers with all their
// values, because the other form keeps the last one of a header that was sent twice.
func message(req events.APIGatewayProxyRequest) (signing.Message, error) {
	body := []byte(req.Body)
	if req.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(req.Body); err != nil {
			return signing.Message{}, fmt.Errorf("the body says that it is base64: %w", err)
		}
	}
	h := make(http.Header, len(req.MultiValueHeaders))
	for name, values := range req.MultiValueHeaders {
		for _, value := range values {
			h.Add(name, value)
		}
	}
	target := req.Path
	if len(req.MultiValueQueryStringParameters) > 0 {
		target += "?" + url.Values(req.MultiValueQueryStringParameters).Encode()
	}
	return signing.Message{Method: req.HTTPMethod, URL: target, Header: h, Body: body}, nil
}
