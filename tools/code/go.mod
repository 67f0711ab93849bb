module github.com/hookloop/hookloop/tools/code

go 1.26.0
