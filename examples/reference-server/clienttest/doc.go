// Package clienttest proves that a client which a generator has made of the reference
// server's OpenAPI document compiles and works. To make it again, with the server
// running:
//
//	curl -s http://127.0.0.1:8080/openapi.json > /tmp/openapi.json
//	go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml /tmp/openapi.json
//
// It is a module of its own, so that nobody else needs what generated code imports.
package clienttest
