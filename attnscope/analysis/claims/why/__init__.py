"""Why a head looks where it looks: its score as a sum over what came before, and what taking it away does."""
