module alhena.dev/hosts/openase

go 1.19
