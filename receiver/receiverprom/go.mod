module github.com/surehook/surehook/receiver/receiverprom

go 1.26.0

replace github.com/surehook/surehook => ../..

require github.com/surehook/surehook v0.0.0-00010101000000-000000000000
