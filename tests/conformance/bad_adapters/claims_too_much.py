"""Claims a format that it does not have, and answers with the codes of another."""

from .talk import IDENTITY, serve

if __name__ == "__main__":
    serve(identity=IDENTITY.replace("values=e2m1", "values=e2m1,e2m3,fp4"))
