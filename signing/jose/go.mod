module github.com/surehook/surehook/signing/jose

go 1.26.0

replace github.com/surehook/surehook => ../..

require (
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/stretchr/testify v1.12.1
	github.com/surehook/surehook v0.0.0-00010101000000-000000000000
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
