package block

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

var _ portal.Registry = limited{}

// BLOCK
