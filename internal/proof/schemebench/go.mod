module github.com/surehook/surehook/internal/proof/schemebench

go 1.26.0

replace github.com/surehook/surehook => ../../..

require (
	github.com/google/go-github/v90 v90.0.0
	github.com/slack-go/slack v0.35.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	github.com/stripe/stripe-go/v86 v86.1.0
	github.com/surehook/surehook v0.0.0-00010101000000-000000000000
	github.com/svix/svix-webhooks v1.44.0
)

require (
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	gopkg.in/validator.v2 v2.0.1 // indirect
)
