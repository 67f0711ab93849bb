module github.com/hookloop/hookloop/tools/measure

go 1.26.0
